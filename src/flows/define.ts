/** Checks what `bot.flow` is given. @module */
import { ConfigError } from "../channels/errors.ts";
import type { FlowDefinition } from "../turns/BotRuntime.ts";
import { refuse } from "../turns/options.ts";
import type { FlowOptions } from "./types.ts";

const NAME = /^[A-Za-z0-9._-]{1,64}$/;
const OPTIONS = ["version", "cancel", "cancelled", "commands", "onCodeChange"];

/** A flow from what `bot.flow` was given. @throws {ConfigError} naming the option and what is allowed */
export function flowDefinition(
  name: string,
  options: FlowOptions,
  run: unknown,
  others: readonly FlowDefinition[],
): FlowDefinition {
  if (typeof name !== "string" || !NAME.test(name))
    refuse("the name of a flow", name, '1 to 64 letters, digits, ".", "_" or "-"');
  if (typeof run !== "function") throw new ConfigError(`flow("${name}") needs a function`);
  for (const option of Object.keys(options)) {
    if (!OPTIONS.includes(option))
      refuse(`option "${option}" of flow "${name}"`, option, `one of ${OPTIONS.join(", ")}`);
  }
  const { version = 1, commands = "pass", onCodeChange = "fail", cancel } = options;
  if (!Number.isInteger(version) || version < 1)
    refuse(`version of flow "${name}"`, version, "a whole number from 1");
  if (commands !== "pass" && commands !== "cancel")
    refuse(`commands of flow "${name}"`, commands, '"pass" or "cancel"');
  if (onCodeChange !== "fail" && onCodeChange !== "restart")
    refuse(`onCodeChange of flow "${name}"`, onCodeChange, '"fail" or "restart"');
  if (
    cancel !== undefined &&
    !(Array.isArray(cancel) && cancel.every((one) => typeof one === "string"))
  )
    refuse(`cancel of flow "${name}"`, cancel, "a list of words");
  if (others.some((one) => one.name === name && one.version === version)) {
    throw new ConfigError(
      `there are two flows "${name}" of version ${version}; give the newer one a higher \`version\``,
    );
  }
  return { name, version, options, run: run as FlowDefinition["run"] };
}
