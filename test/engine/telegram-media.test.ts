/** What people send on Telegram, through the whole engine: photos, albums, and no token anywhere. */
import { describe, expect, test } from "vitest";
import { type LoadedMedia, loadMediaOf } from "../../src/index.ts";
import { SIM_TOKEN } from "../../src/testing/platforms/telegram.ts";
import { TelegramLab } from "./telegramLab.ts";

const ANN = 501;
const PICTURE = new Uint8Array([0xff, 0xd8, 1, 2, 3]);
const HALF = SIM_TOKEN.slice(SIM_TOKEN.indexOf(":") + 1);

/** A bot that looks at what it gets, and says how large it is. */
function looking(options: ConstructorParameters<typeof TelegramLab>[1] = {}): TelegramLab {
  return new TelegramLab((bot, lab) => {
    bot.on("error", ({ error }) => {
      lab.notes.push(String(error));
    });
    bot.otherwise(async (ctx) => {
      const files: (LoadedMedia | undefined)[] = [];
      for (const index of ctx.media.keys()) files.push(await loadMediaOf(ctx, { index }));
      await loadMediaOf(ctx, { throwOnError: true }).catch((error: { reason?: string }) => {
        lab.notes.push(error.reason);
      });
      const sizes = files.map((file) => file?.bytes.length ?? "none");
      await ctx.reply(`${ctx.text} [${sizes.join(" ")}]`);
    });
  }, options);
}

function photo(lab: TelegramLab, caption: string, group?: string) {
  const { fileId } = lab.sim.addFile(PICTURE, { mimeType: "image/jpeg" });
  const size = { file_id: fileId, file_unique_id: `u${fileId}`, width: 1, height: 1 };
  const album = group === undefined ? {} : { media_group_id: group };
  return lab.sim.messageUpdate({
    chatId: ANN,
    text: "",
    fields: { text: undefined, caption, photo: [size], ...album },
  });
}

/** Changes the reference in the journal, as somebody with the database could. */
function tamper(lab: TelegramLab, change: (payload: string) => string): void {
  const storage = lab.runtime.storage("ChatActor", lab.actor(ANN));
  const [row] = storage.all<{ seq: number; payload: string }>("SELECT * FROM inbox", []);
  if (row === undefined) throw new Error("no record");
  const payload = change(row.payload);
  expect(payload).not.toBe(row.payload);
  storage.run("UPDATE inbox SET payload = ? WHERE seq = ?", [payload, row.seq]);
}

describe("a photo with a caption", () => {
  test("is downloaded by the turn, and again by the run after a kill", async () => {
    const lab = looking();
    let died = false;
    lab.runtime.onProbe = ({ label, side }) => {
      const now = !died && label === "outbox.insert" && side === "before";
      died ||= now;
      return now;
    };
    await lab.deliver(photo(lab, "look"));
    await lab.idle();
    expect(died).toBe(true);
    expect(lab.texts(ANN)).toContain("look [5]");
  });

  test("is downloaded again when an operator replays it much later", async () => {
    const lab = looking();
    const update = photo(lab, "look");
    await lab.deliver(update);
    await lab.idle();
    lab.runtime.kill();
    await lab.runtime.advance(3 * 86_400_000);
    const before = lab.sim.calls.filter((call) => call.method === "getFile").length;
    expect(await lab.client(ANN).inbox.replay(String(update.update_id))).toBe(true);
    await lab.idle();
    expect(lab.sim.calls.filter((call) => call.method === "getFile").length).toBe(before + 2);
    expect(lab.texts(ANN).filter((text) => text === "look [5]")).toHaveLength(1);
  });

  for (const [what, change, reason] of [
    [
      "another channel's",
      (p: string) => p.replace('"provider":"telegram"', '"provider":"whatsapp"'),
      "provider-mismatch",
    ],
    ["of another version", (p: string) => p.replace('{"v":1,', '{"v":9,'), "rehydrate-failed"],
    [
      "with a path in it",
      (p: string) => p.replace(/"fileId":"/, '"fileId":"../../bot/'),
      "rehydrate-failed",
    ],
    [
      "with an address in it",
      (p: string) => p.replace(/"data":\{/, '"data":{"url":"https://evil.example/x",'),
      "rehydrate-failed",
    ],
  ] as const) {
    test(`a reference ${what} is refused with its reason, and the turn runs all the same`, async () => {
      const lab = looking();
      const update = photo(lab, "look");
      await lab.deliver(update);
      await lab.idle();
      lab.notes.length = 0;
      tamper(lab, change);
      lab.runtime.kill();
      const calls = lab.sim.calls.length;
      await lab.client(ANN).inbox.replay(String(update.update_id));
      await lab.idle();
      expect(lab.notes).toEqual([reason]);
      expect(lab.sim.calls.slice(calls).map((call) => call.method)).not.toContain("getFile");
      expect(lab.logs.join("\n")).not.toContain("evil.example");
    });
  }

  test("with inbox.mediaRefs off it is there for the first run only", async () => {
    const lab = looking({ durability: { inbox: { mediaRefs: false } } });
    const update = photo(lab, "look");
    await lab.deliver(update);
    await lab.idle();
    expect(lab.texts(ANN)).toContain("look [5]");
    lab.notes.length = 0;
    await lab.client(ANN).inbox.replay(String(update.update_id));
    await lab.idle();
    expect(lab.notes).toEqual(["not-durable"]);
    expect(lab.disk()).not.toContain("fileId");
  });

  test("an album is one event with all its pictures and its caption", async () => {
    const lab = looking();
    await lab.deliver(photo(lab, "trip", "g"), photo(lab, "", "g"), photo(lab, "", "g"));
    await lab.idle();
    await lab.runtime.advance(5_000);
    expect(lab.texts(ANN).filter((text) => text?.includes("["))).toEqual(["trip [5 5 5]"]);
  });
});

describe("the token", () => {
  test("is in no journal, no log line and no error, whatever fails", async () => {
    const lab = looking();
    for (const type of ["drop", "torn", "hang"] as const) {
      lab.sim.fault({ type });
      await lab.deliver(photo(lab, type));
      await lab.runtime.advance(120_000);
    }
    await lab.deliver(lab.sim.messageUpdate({ chatId: ANN, text: "hello" }));
    await lab.idle();
    await lab.runtime.advance(3_600_000);
    const everything = [lab.disk(), lab.logs.join("\n"), JSON.stringify(lab.notes)].join("\n");
    expect(everything.length).toBeGreaterThan(1_000);
    for (const secret of [SIM_TOKEN, HALF, encodeURIComponent(SIM_TOKEN)]) {
      expect(everything).not.toContain(secret);
    }
  });
});
