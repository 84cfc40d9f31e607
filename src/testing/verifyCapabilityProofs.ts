/**
 * Holds a channel to its word: whatever it declares must be shown by a proof that passes, and nothing may
 * be shown that it does not declare.
 *
 * @module
 */
import type { AnyChannel, Capabilities, Channel, DeliveryClass } from "../channels/channel.ts";
import type { ContentKind } from "../channels/content.ts";

/** What is asked about one capability. */
interface Question {
  /** Whether the channel says that it can. */
  declared(channel: AnyChannel): boolean;
  /** Whether there is code behind it, where it takes a function of its own. */
  code?(channel: AnyChannel): boolean;
}

const always: Question = { declared: () => true };
const kind = (name: ContentKind): Question => ({
  declared: ({ capabilities }) => capabilities.kinds.includes(name),
});
const delivery = (name: DeliveryClass): Question => ({
  declared: ({ capabilities }) => capabilities.delivery.class === name,
});
const given = (name: "pacing" | "statuses" | "streaming"): Question => ({
  declared: ({ capabilities }) => capabilities[name] !== undefined,
});

type Flag = {
  [K in keyof Capabilities]-?: Capabilities[K] extends boolean ? K : never;
}[keyof Capabilities];
type Call = keyof AnyChannel["outbound"];

/** A flag, and the call that it takes, if it takes one. */
function flag(name: Flag, call?: Call): Question {
  const declared: Question["declared"] = ({ capabilities }) => capabilities[name];
  return call === undefined
    ? { declared }
    : { declared, code: ({ outbound }) => outbound[call] !== undefined };
}

/** An ability that is declared by its function being there. */
const call = (name: Call): Question => ({
  declared: ({ outbound }) => outbound[name] !== undefined,
});

const QUESTIONS = {
  text: kind("text"),
  markdown: kind("markdown"),
  media: kind("media"),
  buttons: kind("buttons"),
  template: kind("template"),
  silent: kind("silent"),
  reply: kind("reply"),
  native: kind("native"),
  /** Text at the limit goes out whole, one more is split. */
  textLimit: always,
  /** A button's data of `buttonDataBytes` comes back as it was. */
  buttonData: kind("buttons"),
  threads: flag("threads"),
  edit: flag("edit", "edit"),
  delete: flag("delete", "delete"),
  typing: flag("typing", "typing"),
  reactions: flag("reactions", "react"),
  /** A message becomes what a rendered part says, and a repeat of that changes nothing. */
  finalizeInPlace: flag("finalizeInPlace", "revise"),
  /** Previews at the declared pace are no more than the platform takes. */
  streaming: given("streaming"),
  /** A draft is shown, and gone once its message is there. */
  draft: {
    declared: ({ capabilities }) => capabilities.streaming?.draft !== undefined,
    code: ({ outbound }) => outbound.draft !== undefined,
  },
  keyed: delivery("keyed"),
  provable: delivery("provable"),
  blind: delivery("blind"),
  /** A repeat inside `markerWindowMs` is recognised. */
  markerWindow: {
    declared: ({ capabilities }) => capabilities.delivery.markerWindowMs !== undefined,
  },
  reconcile: call("reconcile"),
  selfTest: call("selfTest"),
  statuses: given("statuses"),
  pacing: given("pacing"),
  /** A webhook that was not answered with success comes again, under the same id. */
  redelivery: always,
  /** A chat's next event comes only after the last was answered. */
  serialRedelivery: { declared: ({ capabilities }) => capabilities.redelivery.serial === true },
  journalFailure: always,
  /** What comes twice has the same id, and two things never have. */
  dedupe: always,
  handshake: { declared: ({ inbound }) => inbound.handshake !== undefined },
  polling: { declared: ({ polling }) => polling !== undefined },
  /** References to media come back from the journal, tampered ones do not. */
  mediaReferences: { declared: ({ media }) => media !== undefined },
  prepare: call("prepare"),
  answerPress: call("answerPress"),
  /** Refused formatting goes out as plain text. */
  plain: call("plain"),
  /** What was rendered for a chat that moved goes to its new place. */
  readdress: call("readdress"),
  textOf: call("textOf"),
  api: call("api"),
} as const satisfies Record<string, Question>;

/** A name of something that a channel can declare. */
export type CapabilityName = keyof typeof QUESTIONS;

/** Every name, in the order of the result. */
export const CAPABILITY_NAMES = Object.keys(QUESTIONS) as readonly CapabilityName[];

/** Shows one capability: passes by returning, fails by throwing. */
export type CapabilityProof<O> = (channel: Channel<O>) => void | Promise<void>;

/** Proofs by the capability that they show. */
export type CapabilityProofs<O> = { readonly [K in CapabilityName]?: CapabilityProof<O> };

/** What is known of one capability. */
export interface ProvenCapability {
  capability: CapabilityName;
  status: "verified" | "not_declared";
}

/** What a channel declares and does not hold, all of it. */
export class CapabilityProofError extends Error {
  /** One line for each. */
  readonly problems: readonly string[];
  /** What the proofs threw, in order. */
  readonly errors: readonly unknown[];
  constructor(channel: string, problems: readonly string[], errors: readonly unknown[]) {
    super(`the channel "${channel}" does not hold what it declares:\n- ${problems.join("\n- ")}`, {
      cause: errors[0],
    });
    this.name = "CapabilityProofError";
    this.problems = problems;
    this.errors = errors;
  }
}

/**
 * Runs the proofs of a channel, one after the other.
 *
 * @param options.timeoutMs how long one proof may take, in real milliseconds. Default 10,000
 * @returns every capability that there is, and whether the channel has it
 * @throws {CapabilityProofError} when a declared capability has no proof or a failing one, when a proof
 * shows what is not declared, and when a declaration and the channel's functions disagree; its message
 * lists everything
 */
export async function verifyCapabilityProofs<O>(
  channel: Channel<O>,
  proofs: CapabilityProofs<O>,
  options: { timeoutMs?: number } = {},
): Promise<ProvenCapability[]> {
  const problems = [...strangers(proofs), ...contradictions(channel)];
  const errors: unknown[] = [];
  const table: ProvenCapability[] = [];
  for (const capability of CAPABILITY_NAMES) {
    const declared = QUESTIONS[capability].declared(channel);
    const proof = proofs[capability];
    table.push({ capability, status: declared ? "verified" : "not_declared" });
    if (!declared) {
      if (proof !== undefined) problems.push(`${capability}: proven, but not declared`);
      continue;
    }
    if (proof === undefined) {
      problems.push(`${capability}: declared, but not proven`);
      continue;
    }
    try {
      await within(options.timeoutMs ?? 10_000, proof(channel));
    } catch (error) {
      errors.push(error);
      problems.push(`${capability}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  if (problems.length > 0) throw new CapabilityProofError(channel.name, problems, errors);
  return table;
}

function strangers(proofs: object): string[] {
  return Object.keys(proofs)
    .filter((name) => !Object.hasOwn(QUESTIONS, name))
    .map((name) => `${name}: there is no such capability`);
}

/** Where what the channel says and what it has differ. */
function contradictions(channel: AnyChannel): string[] {
  const found: string[] = [];
  const questions: Record<string, Question> = QUESTIONS;
  for (const [name, { declared, code }] of Object.entries(questions)) {
    if (code === undefined) continue;
    const says = declared(channel);
    if (says && !code(channel)) found.push(`${name}: declared, but there is no function for it`);
    // A preview may be revised where no final message is made of it.
    if (!says && name !== "finalizeInPlace" && code(channel)) {
      found.push(`${name}: there is a function for it, but it is not declared`);
    }
  }
  const { delivery, statuses } = channel.capabilities;
  if (delivery.class === "provable" && !channel.outbound.reconcile && !statuses) {
    found.push("provable: nothing could prove a send: it takes `reconcile` or `statuses`");
  }
  return found;
}

/** A proof that waits for an answer that never comes has failed. */
async function within(ms: number, proof: void | Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`its proof did not end within ${ms} ms`)), ms);
  });
  try {
    await Promise.race([proof, late]);
  } finally {
    clearTimeout(timer);
  }
}
