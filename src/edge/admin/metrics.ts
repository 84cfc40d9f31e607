/** Counters, as JSON and as Prometheus text. @module */
import type { Hono } from "hono";
import { METRICS, type MetricName, type MetricValues } from "../../objects/Metrics.ts";
import type { ChatCounts } from "../../turns/Client.ts";
import { type AdminContext, type AdminEnv, choice } from "./parts.ts";

const HELP: Record<MetricName, string> = {
  inboundJournaled: "Events recorded.",
  inboundDuplicates: "Deliveries of events that were recorded before.",
  inboundReplayed: "Turns that ran again.",
  inboundDead: "Events given up.",
  inboundIgnored: "Messages of other bots that were not admitted.",
  inboundRefused: "Events refused because the queue of their chat was full.",
  inboundUnjournaled: "Events that ran without a record, because the journal refused it.",
  outboxJournaled: "Parts of sends recorded.",
  outboxDeduped: "Sends answered from their record.",
  outboxRetried: "Attempts after the first.",
  outboxDeferred: "Replies whose inline time was spent.",
  outboxDead: "Sends given up.",
  outboxAmbiguous: "Sends of which it was not known whether they arrived.",
  outboxBypassed: "Sends that went out without a record.",
  staleLeases: "Turns whose results were dropped because another run owned the event.",
  outboxDiverged: "Sends of a repeated turn that differ from its first run.",
};

const PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8";

/** Adds the routes. */
export function metricRoutes(app: Hono<AdminEnv>): void {
  app.get("/metrics", async (c) => {
    const format = choice(c.req.query(), "format", ["json", "prometheus"]) ?? "json";
    if (format === "prometheus") return prometheus(c);
    const { bot, client } = c.var.tools;
    const [metrics, chats] = await Promise.all([
      client.durability.metrics(),
      client.durability.counts(),
    ]);
    return c.json({ bot: bot.id, metrics, chats });
  });
  app.get("/metrics.prom", prometheus);
}

async function prometheus(c: AdminContext): Promise<Response> {
  const { bot, client } = c.var.tools;
  const [metrics, chats] = await Promise.all([
    client.durability.metrics(),
    client.durability.counts(),
  ]);
  return c.text(prometheusText(bot.id, metrics, chats), 200, { "content-type": PROMETHEUS });
}

/** The text format, version 0.0.4. */
export function prometheusText(bot: string, metrics: MetricValues, chats: ChatCounts): string {
  const label = `{bot="${bot.replace(/[\\"\n]/g, (c) => (c === "\n" ? "\\n" : `\\${c}`))}"}`;
  const lines = METRICS.flatMap((name) => {
    const full = `holdfast_${name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`)}_total`;
    return sample(full, HELP[name], "counter", label, metrics[name]);
  });
  lines.push(
    ...sample(
      "holdfast_chats_unfinished",
      "Chats with something unfinished beyond its turn.",
      "gauge",
      label,
      chats.unfinished,
    ),
    ...sample(
      "holdfast_chats_overdue",
      "Chats that slept past the time of their work.",
      "gauge",
      label,
      chats.overdue,
    ),
  );
  return `${lines.join("\n")}\n`;
}

function sample(
  name: string,
  help: string,
  type: "counter" | "gauge",
  label: string,
  value: number,
): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, `${name}${label} ${value}`];
}
