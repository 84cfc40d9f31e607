/** Counters of a chat (design §9). Kept in memory and folded into reports, never into rows of their own. @module */

/** The names of the counters. */
export const METRICS = [
  "inboundJournaled",
  "inboundDuplicates",
  "inboundReplayed",
  "inboundDead",
  "inboundIgnored",
  "inboundRefused",
  "inboundUnjournaled",
  "outboxJournaled",
  "outboxDeduped",
  "outboxRetried",
  "outboxDeferred",
  "outboxDead",
  "outboxAmbiguous",
  "outboxBypassed",
  "staleLeases",
  "outboxDiverged",
] as const;

/** The name of a counter. */
export type MetricName = (typeof METRICS)[number];

/** Values by name. */
export type MetricValues = Record<MetricName, number>;

/** All counters at zero. */
export function noMetrics(): MetricValues {
  return Object.fromEntries(METRICS.map((name) => [name, 0])) as MetricValues;
}

/** Adds `more` to `values` in place. Unknown names, from another version, are left out. */
export function addMetrics(values: MetricValues, more: Partial<MetricValues>): MetricValues {
  for (const name of METRICS) values[name] += more[name] ?? 0;
  return values;
}

/** Counters of one incarnation: what was counted since the last report. */
export class Metrics {
  readonly #all = noMetrics();
  #values = noMetrics();
  #dirty = false;

  count(name: MetricName, by = 1): void {
    this.#values[name] += by;
    this.#all[name] += by;
    this.#dirty = true;
  }

  /** Everything that this incarnation counted. */
  total(): MetricValues {
    return { ...this.#all };
  }

  /** Takes what has not been reported yet; `undefined` when there is nothing. */
  take(): MetricValues | undefined {
    if (!this.#dirty) return undefined;
    const taken = this.#values;
    this.#values = noMetrics();
    this.#dirty = false;
    return taken;
  }

  /** Puts back what could not be reported. */
  restore(values: MetricValues): void {
    addMetrics(this.#values, values);
    this.#dirty = true;
  }
}
