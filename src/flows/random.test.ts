/** Functions made by chance, killed by chance: each execution sees what the one before it saw. */
import { expect, test } from "vitest";
import type { FlowContext } from "../index.ts";
import { type TestBot, testBot } from "../testing/index.ts";
import { seededRandom } from "../testing/random.ts";
import { botWith, refuseCommits } from "./lab.ts";

const KINDS = [
  "step",
  "fails",
  "tries",
  "both",
  "say",
  "batch",
  "settled",
  "edit",
  "state",
  "ask",
  "sleep",
  "hook",
  "beside",
] as const;
/** Operations that write nothing by themselves. */
const UNWRITTEN: ReadonlySet<string> = new Set(["fails", "settled", "state"]);
type Op = (typeof KINDS)[number];

/** What an outside observer knows of a run. */
interface World {
  /** Effects, by the operation that had them. */
  done: Map<string, number>;
  /** What the function saw at each operation, and how far it had come when it did. */
  seen: unknown[];
  said: Set<string>;
  token?: string;
}

/** Does one operation; gives what the function sees of it. */
async function does(c: FlowContext, op: Op, n: number, world: World): Promise<unknown> {
  const effect = (name: string): number => {
    const count = (world.done.get(name) ?? 0) + 1;
    world.done.set(name, count);
    return count;
  };
  const say = (text: string) => {
    world.said.add(text);
    return text;
  };
  const ok = (name: string) =>
    c.step("s", async () => {
      c.state.update<number>("n", (x) => (x ?? 0) + 1);
      await c.reply(say(`${name} inside`));
      return `${name} ${effect(name)} ${c.random()}`;
    });
  const fails = (name: string) =>
    c.step("s", async () => {
      c.state.update<number>("n", (x) => (x ?? 0) + 100);
      const count = effect(name);
      throw new Error(`${name} failed ${count}`);
    });
  switch (op) {
    case "step":
      return ok(`${n}`);
    case "fails":
      return fails(`${n}`).catch((error: Error) => error.message);
    case "tries": {
      let tries = 0;
      return c.step(
        "t",
        () => {
          c.state.update<number>("n", (x) => (x ?? 0) + 1);
          tries += 1;
          if (tries < 3) throw new Error("again");
          return tries;
        },
        { retries: 3, backoff: "10ms" },
      );
    }
    case "both": {
      const all = await Promise.allSettled([ok(`${n}a`), fails(`${n}b`), ok(`${n}c`)]);
      return all.map((one) => (one.status === "fulfilled" ? one.value : String(one.reason)));
    }
    case "say":
      return void (await c.reply(say(`${n}`)));
    case "batch":
      return (await c.sendBatch([say(`${n} one`), say(`${n} two`)])).error?.message;
    case "settled":
      return void (await c.enqueue(say(`${n} settled`), { when: "settled" }));
    case "edit": {
      const sent = await c.reply(`${n} draft`);
      // What is deferred has no message to change.
      const error = await sent.edit(`${n} final`).catch(String);
      for (const one of ["final", "draft"]) world.said.delete(`${n} ${one}`);
      return [say(`${n} ${error === undefined ? "final" : "draft"}`), error];
    }
    case "state":
      return c.state.update<number>("n", (x) => (x ?? 0) + 1);
    case "ask":
      return c.ask(say(`${n}?`));
    case "sleep":
      return c.sleep("1m");
    case "hook": {
      const paid = c.hook<number>(`h${n}`);
      world.token = paid.token;
      return (await c.waitFor({ paid })).value;
    }
    case "beside":
      return (await Promise.all([c.ask(say(`${n}?`)), ok(`${n}`), fails(`${n}f`).catch(String)]))
        .map(String)
        .join();
  }
}

/** Gives the run what it waits for, until it is over. */
async function drive(t: TestBot, world: World): Promise<string | undefined> {
  const ann = t.user("ann");
  await ann.say("/go");
  const { flows } = t.client.chat(ann.address);
  for (let turn = 0; turn < 200; turn += 1) {
    await t.idle();
    const run = await flows.get("r");
    if (run !== undefined && run.state !== "active") return run.error ?? run.state;
    if (run?.waitsFor?.startsWith("ask")) await ann.say(`answer ${turn}`);
    else if (run?.waitsFor?.startsWith("waitFor"))
      await t.client.resume(world.token ?? "", turn).catch(() => undefined);
    await t.advance("1m");
  }
  return "endless";
}

test("200 functions, each killed at its own moments, half of them on a disk that refuses", async () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const random = seededRandom(seed);
    const ops = Array.from(
      { length: 3 + Math.floor(random() * 8) },
      () => KINDS[Math.floor(random() * KINDS.length)] as Op,
    );
    const world: World = { done: new Map(), seen: [], said: new Set() };
    const differs: string[] = [];
    let far = -1;
    const t = testBot(
      botWith(
        (bot) => {
          const flow = bot.flow("go", async (c) => {
            for (const [n, op] of ops.entries()) {
              const got = [await does(c, op, n, world), c.state.get("n"), c.now(), c.random()];
              const was = JSON.stringify(world.seen[n]);
              const is = JSON.stringify(got);
              // Caught or not, the disk's refusal ends an execution.
              if (is.includes("SQLITE_FULL")) return;
              // A failure counts once something is written after it.
              if (n < far && was !== is) differs.push(`${n} ${op}: ${was} and then ${is}`);
              world.seen[n] = got;
              if (!UNWRITTEN.has(op)) far = Math.max(far, n);
            }
          });
          bot.command("go", (ctx) => ctx.start(flow, undefined, { id: "r" }));
        },
        { durability: { inbox: { maxAttempts: 20 } } },
      ),
      { seed },
    );
    let kills = 0;
    t.runtime.onProbe = ({ kind, label, side }) => {
      if (kind !== "ChatActor" || (label === "turn.step" && side === "before")) return false;
      const dies = kills < 12 && random() < 0.05;
      if (dies) kills += 1;
      return dies;
    };
    // Every second one on a disk that now and then refuses; a start that is refused is its handler's to see.
    refuseCommits(
      t,
      (label) => label !== "flow.start" && seed % 2 === 0 && kills < 12 && random() < 0.03,
    );
    const end = await drive(t, world);
    const ann = t.user("ann");
    const state = await t.client.chat(ann.address).state.get("n");
    const last = world.seen.at(-1) as unknown[] | undefined;
    // What a step does whose record is refused, or dies with another's, is nobody's to know.
    const known = ([name, count]: [string, number]) =>
      seed % 2 === 1 && count > 1 && ops[+name] === "step";
    const twice = [...world.done].filter(known);
    expect({ seed, ops, end, differs, twice, state, screen: ann.screen.toSorted() }).toEqual({
      seed,
      ops,
      end: "done",
      differs: [],
      twice: [],
      state: last?.[1],
      screen: [...world.said].toSorted(),
    });
    t.close();
  }
}, 60_000);
