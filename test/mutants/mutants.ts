/**
 * Mutants: each breaks one rule that the promise rests on. A mutant that no test catches means that the
 * rule is not tested.
 *
 * @module
 */

/** One mutation of one file. */
export interface Mutant {
  name: string;
  /** The tests that are most likely to catch it: run before all others. */
  first?: string;
  /** What a user would lose. */
  breaks: string;
  file: string;
  find: string;
  replace: string;
}

/** The mutants. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: "claim fence",
    first: "test/engine/claims.test.ts",
    breaks: "a run that lost its claim writes its state all the same",
    file: "src/journal/InboxTable.ts",
    find: "` AND claim = ? AND state = 'processing'`, [",
    replace: "` AND ? IS NOT NULL`, [",
  },
  {
    name: "sending mark",
    first: "test/engine/evidence.test.ts",
    breaks: "after a crash nobody knows that a call may have been made",
    file: "src/journal/OutboxTable.ts",
    find: "...names.map((name) => row[name])",
    replace:
      '...names.map((name) => (name === "state" && row.state === "sending" ? "pending" : row[name]))',
  },
  {
    name: "dedupe",
    breaks: "a redelivered event runs twice",
    first: "test/engine/inbox-admission.test.ts",
    file: "src/objects/Admission.ts",
    find: "      id: event.id,\n      semantic",
    replace: "      id: `$" + "{event.id}/$" + "{seq}`,\n      semantic",
  },
  {
    name: "re-arm",
    first: "test/engine/inbox-failures.test.ts",
    breaks: "after its first alarm a chat sleeps for ever",
    file: "src/objects/Chat.ts",
    find: 'journal.commit("alarm.rearm", () => alarm.arm(next))',
    replace: 'journal.commit("alarm.rearm", () => undefined)',
  },
  {
    name: "progress rule",
    first: "test/engine/inbox-poison.test.ts",
    breaks: "an event that kills the process does so for ever",
    file: "src/turns/poison.ts",
    find: "reached > row.progress ? row.stalled : row.stalled + 1",
    replace: "row.stalled",
  },
  {
    name: "part order",
    first: "test/engine/parts.test.ts",
    breaks: "the second half of a message comes before the first",
    file: "src/outbox/Drain.ts",
    find: "return previous !== undefined && isOpen(previous);",
    replace: "return previous !== undefined && false;",
  },
  {
    name: "frozen request",
    first: "test/engine/frozen.test.ts",
    breaks: "a repeat under the same marker carries another text",
    file: "src/outbox/render.ts",
    find: "if (row.part !== 0 || !untouched || shown) return undefined;",
    replace: "if (row.part !== 0) return undefined;",
  },
  {
    name: "atomic settle",
    first: "test/engine/state.test.ts",
    breaks: "state is written apart from the turn's end, so a crash between doubles or drops it",
    file: "src/turns/TurnRunner.ts",
    find: "    return journal.commit(label, () => {",
    replace:
      '    if (settled) journal.commit("state.write", () => journal.side.writeState(turn.state.writes()));\n    return journal.commit(label, () => {',
  },
  {
    name: "sticky evidence",
    first: "test/engine/sticky.test.ts",
    breaks:
      "a send that may have happened is called dead, and is resent by an operator who trusts that",
    file: "src/outbox/verdict.ts",
    find: "sticky = context.row.first_maybe_at !== null,",
    replace: "sticky = false,",
  },
  {
    name: "announcement flag",
    first: "test/engine/hooks.test.ts",
    breaks: "a death that a crash interrupted is never announced",
    file: "src/outbox/Announcer.ts",
    find: "      await this.#call(async (tools) => {",
    replace: "      this.#paid(turn, pos, bit);\n      await this.#call(async (tools) => {",
  },
  {
    name: "burst freeze",
    first: "test/engine/burst.test.ts",
    breaks: "a burst's later messages are marked as joined and said to nobody",
    file: "src/objects/Claims.ts",
    find: "        ...(burst?.payload === undefined ? {} : { payload: burst.payload }),\n",
    replace: "",
  },
  {
    name: "interrupt stamp",
    first: "test/engine/interrupt.test.ts",
    breaks: "an interrupted answer goes on after a crash",
    file: "src/objects/Admission.ts",
    find: "    this.#core.journal.inbox.update({ ...running.row }, { flags });\n",
    replace: "",
  },
  {
    name: "relay key",
    first: "test/engine/relay.test.ts",
    breaks: "a relay that is handed over again is said again",
    file: "src/outbox/relay.ts",
    find: "    const own = publicKeyOf(core.journal, row);",
    replace:
      "    const own = publicKeyOf(core.journal, row) + core.incarnation + String(row.attempts);",
  },
  {
    name: "forward owed",
    first: "test/engine/migration.test.ts",
    breaks: "a moved chat's new name is never told where its chat lives",
    file: "src/objects/Migration.ts",
    find: "    journal.setFact(OWED, other);\n",
    replace: "",
  },
  {
    name: "held answer",
    first: "test/engine/acks.test.ts",
    breaks: "the platform is told success for an event that the bot refused",
    file: "src/objects/Acks.ts",
    find: 'const ack = stage === "nacked" ? "nacked" : "ok";',
    replace: 'const ack = "ok" as Ack;',
  },
  {
    name: "media check",
    first: "test/engine/telegram-media.test.ts",
    breaks: "a reference that somebody changed in the journal is followed",
    file: "src/turns/media.ts",
    find: "    return channel.media.rehydrateMediaRef(stored, ref);",
    replace: "    return { ...ref, ref: stored.data };",
  },
  {
    name: "poll cursor",
    first: "test/engine/polling.test.ts",
    breaks: "updates are confirmed before their chats have them, so a kill loses them",
    file: "src/objects/Polling.ts",
    find: "    const spills = await Promise.all(sorted.chats.map((group) => this.#admit(group)));",
    replace:
      '    const early = updates.at(-1);\n    if (early !== undefined) this.#write("poll.advance", { ...this.#read(), cursor: early.cursor });\n    const spills = await Promise.all(sorted.chats.map((group) => this.#admit(group)));',
  },
  {
    name: "quarantine order",
    first: "test/engine/polling.test.ts",
    breaks: "a chat's later updates overtake those that wait for it",
    file: "src/objects/Polling.ts",
    find: "    if (this.#quarantine.has(group.name)) return { group, dueAt };\n",
    replace: "",
  },
  {
    name: "sweep",
    first: "test/engine/sweep.test.ts",
    breaks: "a chat that lost its alarm sleeps for ever",
    file: "src/objects/WakeSweep.ts",
    find: "      const claimed = this.#claim();",
    replace: "      const claimed = this.#claim().slice(0, 0);",
  },
  {
    name: "loop guard",
    first: "test/engine/bots.test.ts",
    breaks: "two bots answer each other for ever",
    file: "src/objects/LoopGuard.ts",
    find: "    return this.#limit - this.#begun.length;",
    replace: "    return 1e9;",
  },
  {
    name: "one owner",
    first: "test/engine/migrationRaces.test.ts",
    breaks: "two actors of a renamed chat forward to each other",
    file: "src/objects/Migration.ts",
    find: "    if (this.#owns()) return { owner: true };\n",
    replace: "",
  },
  {
    name: "rest",
    first: "test/engine/inbox-admission.test.ts",
    breaks: "turns that rest for days fill the queue and lock people out",
    file: "src/journal/OpenRecords.ts",
    find: 'return open >= OPEN.resting ? "rests" : "waits";',
    replace: 'return "waits";',
  },
  {
    name: "lane of relays",
    first: "test/engine/relay.test.ts",
    breaks: "another chat that does not answer holds up every reply",
    file: "src/outbox/Drain.ts",
    find: "        if (isRelay(row)) {",
    replace: "        if (isRelay(row) && this.#running === false) {",
  },
  {
    name: "recorded step of a flow",
    first: "src/flows/flows.test.ts",
    breaks: "an order is placed again each time its customer answers",
    file: "src/flows/RunTurn.ts",
    find: "const known = failed ? undefined : journal.side.step(row.seq, path);",
    replace: "const known = undefined as string | undefined;",
  },
  {
    name: "recorded answer",
    first: "src/flows/flows.test.ts",
    breaks: "a question that was answered is asked again",
    file: "src/flows/RunTurn.ts",
    find: "    for (const { n, resolution } of run.ended) {",
    replace: "    for (const { n, resolution } of [] as typeof run.ended) {",
  },
  {
    name: "timer of a flow",
    first: "src/flows/flows.test.ts",
    breaks: "a question that nobody answers waits for ever",
    file: "src/flows/Flows.ts",
    find: '        if (row.state !== "active" || wait === undefined) continue;',
    replace: "        if (wait !== undefined) continue;",
  },
  {
    name: "hook single use",
    first: "src/flows/flows.test.ts",
    breaks: "a payment that is reported twice is taken twice",
    file: "src/flows/Flows.ts",
    find: '    if (journal.inbox.byId(id) !== undefined) return "duplicate";\n',
    replace: "",
  },
  {
    name: "code change",
    first: "src/flows/crashes.test.ts",
    breaks: "a deploy says something new in the middle of an old conversation",
    file: "src/flows/Run.ts",
    find: "  get replaying(): boolean {\n",
    replace: "  get replaying(): boolean {\n    if (this.#waits >= 0) return false;\n",
  },
  {
    name: "kept runs",
    first: "src/flows/flows.test.ts",
    breaks: "what an active run did is purged, and the run cannot go on",
    file: "src/alarms/retention.ts",
    find: "    if (runs.active.has(seq)) return now + keep;\n",
    replace: "",
  },
  {
    name: "state of a flow",
    first: "src/flows/flows.test.ts",
    breaks: "what a flow set is set again over what others set since",
    file: "src/flows/RunState.ts",
    find: "    if (count > (this.#known[key] ?? 0)) this.#fresh.set(key, write);",
    replace: "    this.#fresh.set(key, write);",
  },
  {
    name: "frozen final",
    first: "test/engine/stream-ends.test.ts",
    breaks: "an answer that is on record is asked of the model again, and said in other words",
    file: "src/streams/Streams.ts",
    find: "const known = this.#intents.known(draft);",
    replace: 'const known = undefined as ReturnType<Intents["known"]>;',
  },
  {
    name: "final behind its preview",
    first: "test/engine/streams.test.ts",
    breaks: "an answer is sent as a second message while its preview is on the way",
    file: "src/outbox/previews.ts",
    find: "return preview !== undefined && isOpen(preview);",
    replace: "return preview !== undefined && false;",
  },
  {
    name: "stray preview",
    first: "test/engine/stream-drafts.test.ts",
    breaks: "half an answer stays beside the whole one",
    file: "src/outbox/previews.ts",
    find: "for (const deletes of strays) tidy(core, row, core.now(), { deletes });",
    replace: "",
  },
  {
    name: "late edit",
    first: "test/engine/stream-drafts.test.ts",
    breaks: "an edit that arrives late leaves the answer cut short",
    file: "src/outbox/previews.ts",
    find: "if (late && edits !== undefined)",
    replace: "if (late && edits === undefined)",
  },
];
