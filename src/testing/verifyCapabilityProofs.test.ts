/** A declaration that nobody shows is worth nothing: what the check lets pass, and what it finds. */
import { describe, expect, test } from "vitest";
import type { Capabilities, Channel } from "../channels/channel.ts";
import {
  CAPABILITY_NAMES,
  CapabilityProofError,
  type CapabilityProofs,
  MockPlatform,
  type MockProviderOptions,
  mockProvider,
  verifyCapabilityProofs,
} from "./index.ts";

type Mock = Channel<MockPlatform>;
const clock = { now: () => 0, setTimer: () => () => {} };

function channelOf(
  options: Partial<MockProviderOptions> = {},
  deliveryClass: "keyed" | "provable" | "blind" = "keyed",
): Mock {
  return mockProvider({ platform: new MockPlatform(clock, deliveryClass), ...options });
}

/** Proofs of everything that the mock declares. */
function proofsOf(channel: Mock): CapabilityProofs<MockPlatform> {
  const undeclared = new Set([
    "template",
    "markerWindow",
    "draft",
    "statuses",
    "pacing",
    "serialRedelivery",
  ]);
  for (const name of ["handshake", "polling", "mediaReferences", "prepare", "textOf", "api"]) {
    undeclared.add(name);
  }
  for (const name of ["keyed", "provable", "blind"]) {
    if (name !== channel.capabilities.delivery.class) undeclared.add(name);
  }
  if (channel.outbound.reconcile === undefined) undeclared.add("reconcile");
  return Object.fromEntries(
    CAPABILITY_NAMES.filter((name) => !undeclared.has(name)).map((name) => [name, () => {}]),
  );
}

async function problemsOf(
  channel: Mock,
  proofs: CapabilityProofs<MockPlatform>,
  options?: { timeoutMs: number },
): Promise<readonly string[]> {
  try {
    await verifyCapabilityProofs(channel, proofs, options);
  } catch (error) {
    if (error instanceof CapabilityProofError) return error.problems;
    throw error;
  }
  return [];
}

describe("a channel whose every declaration is proven", () => {
  test("passes, and the table names each capability", async () => {
    const channel = channelOf();
    const table = await verifyCapabilityProofs(channel, proofsOf(channel));
    expect(table.map((row) => row.capability)).toEqual(CAPABILITY_NAMES);
    const status = Object.fromEntries(table.map((row) => [row.capability, row.status]));
    expect(status).toMatchObject({
      text: "verified",
      keyed: "verified",
      journalFailure: "verified",
      template: "not_declared",
      blind: "not_declared",
      polling: "not_declared",
    });
  });

  test.each(["keyed", "provable", "blind"] as const)("%s", async (deliveryClass) => {
    const channel = channelOf({}, deliveryClass);
    expect(await problemsOf(channel, proofsOf(channel))).toEqual([]);
  });

  test("proofs get the channel, run one after the other, and may take their time", async () => {
    const seen: unknown[] = [];
    let running = 0;
    const channel = channelOf();
    const slow = async (given: Mock) => {
      running += 1;
      expect(running).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      seen.push(given);
    };
    expect(await problemsOf(channel, { ...proofsOf(channel), edit: slow, delete: slow })).toEqual(
      [],
    );
    expect(seen).toEqual([channel, channel]);
  });
});

describe("found is", () => {
  test("each declared capability without a proof", async () => {
    const channel = channelOf();
    for (const name of CAPABILITY_NAMES) {
      const proofs = { ...proofsOf(channel) };
      if (proofs[name] === undefined) continue;
      delete proofs[name];
      expect(await problemsOf(channel, proofs)).toEqual([`${name}: declared, but not proven`]);
    }
  });

  test("each proof of what is not declared", async () => {
    const channel = channelOf();
    for (const name of CAPABILITY_NAMES) {
      if (proofsOf(channel)[name] !== undefined) continue;
      const proofs = { ...proofsOf(channel), [name]: () => {} };
      expect(await problemsOf(channel, proofs)).toEqual([`${name}: proven, but not declared`]);
    }
  });

  test("a proof that fails, with what it said", async () => {
    const channel = channelOf();
    const proofs = {
      ...proofsOf(channel),
      edit: () => {
        throw new Error("the old text is still there");
      },
      typing: () => Promise.reject("nothing was shown"),
    };
    expect(await problemsOf(channel, proofs)).toEqual([
      "edit: the old text is still there",
      "typing: nothing was shown",
    ]);
  });

  test("a proof whose answer never comes", async () => {
    const channel = channelOf();
    const proofs = { ...proofsOf(channel), edit: () => new Promise<void>(() => {}) };
    expect(await problemsOf(channel, proofs, { timeoutMs: 20 })).toEqual([
      "edit: its proof did not end within 20 ms",
    ]);
  });

  test("a name that is none", async () => {
    const channel = channelOf();
    const proofs = { ...proofsOf(channel), edits: () => {} } as CapabilityProofs<MockPlatform>;
    expect(await problemsOf(channel, proofs)).toEqual(["edits: there is no such capability"]);
  });

  test("a flag without its function, and a function without its flag", async () => {
    const base = channelOf();
    const { edit: _, revise: _revise, ...rest } = base.outbound;
    const mute: Mock = { ...base, outbound: rest };
    expect(await problemsOf(mute, proofsOf(base))).toEqual([
      "edit: declared, but there is no function for it",
      "finalizeInPlace: declared, but there is no function for it",
    ]);
    const capabilities: Capabilities = { ...base.capabilities, reactions: false };
    const { reactions: __, ...proofs } = proofsOf(base);
    expect(await problemsOf({ ...base, capabilities }, proofs)).toEqual([
      "reactions: there is a function for it, but it is not declared",
    ]);
  });

  test("a provable channel that nothing could prove", async () => {
    const base = channelOf({}, "provable");
    const { reconcile: _, ...outbound } = base.outbound;
    const { reconcile: __, ...proofs } = proofsOf(base);
    expect(await problemsOf({ ...base, outbound }, proofs)).toEqual([
      "provable: nothing could prove a send: it takes `reconcile` or `statuses`",
    ]);
  });

  test("everything at once, in one message", async () => {
    const channel = channelOf();
    const proofs = { ...proofsOf(channel), blind: () => {} };
    delete proofs.silent;
    await expect(verifyCapabilityProofs(channel, proofs)).rejects.toThrow(
      'the channel "mock" does not hold what it declares:\n' +
        "- silent: declared, but not proven\n- blind: proven, but not declared",
    );
  });
});
