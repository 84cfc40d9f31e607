/**
 * The page's script: plain JavaScript, served as it stands. It is kept as text because it is for another
 * machine than the rest of the project, and a build step for one page would cost more than it saves.
 * Its parts are functions of their surroundings, so that the tests can run them without a browser.
 *
 * @module
 */
import { appScript } from "./script/app.ts";
import { crashScript } from "./script/crash.ts";
import { linkScript } from "./script/link.ts";
import { queueScript } from "./script/queue.ts";
import { richScript } from "./script/rich.ts";
import { viewScript } from "./script/view.ts";

/** The whole script. */
export const clientScript = [
  '"use strict";\n(() => {',
  queueScript,
  linkScript,
  richScript,
  viewScript,
  crashScript,
  appScript,
  "main(window);\n})();\n",
].join("");
