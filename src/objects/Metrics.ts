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

/** Counters of one incarnation. A chat counts few of them, and has one such object as long as it lives. */
export class Metrics {
  /** Counted since the incarnation began. */
  readonly #all: Partial<MetricValues> = {};
  /** Counted since the last report; `undefined`: nothing. */
  #unreported: Partial<MetricValues> | undefined;

  count(name: MetricName, by = 1): void {
    this.#all[name] = (this.#all[name] ?? 0) + by;
    this.#unreported ??= {};
    this.#unreported[name] = (this.#unreported[name] ?? 0) + by;
  }

  /** Everything that this incarnation counted. */
  total(): MetricValues {
    return addMetrics(noMetrics(), this.#all);
  }

  /** Takes what has not been reported yet; `undefined` when there is nothing. */
  take(): MetricValues | undefined {
    if (this.#unreported === undefined) return undefined;
    const taken = addMetrics(noMetrics(), this.#unreported);
    this.#unreported = undefined;
    return taken;
  }

  /** Puts back what could not be reported. */
  restore(values: MetricValues): void {
    this.#unreported = addMetrics(values, this.#unreported ?? {});
  }
}
