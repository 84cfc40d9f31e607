/** `npx holdfast <command>`: finds the command. @module */
import { connect } from "./connect.ts";
import { CommandError, command, say } from "./terminal.ts";

const HELP = `npx holdfast <command> [options]

  connect telegram   connect the bot to Telegram, and prove that it works
  --help             this text; after a command, what it does and takes
`;

await command(async () => {
  const [name, ...args] = process.argv.slice(2);
  if (name === "connect") return connect(args);
  if (name === undefined || name === "--help" || name === "-h" || name === "help") return say(HELP);
  throw new CommandError(`there is no command "${name}"`, "npx holdfast --help");
});
