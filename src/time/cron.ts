/**
 * Cron expressions of five fields, in UTC. The library parses; matching is done here, since its own
 * reads the machine's local time.
 *
 * @module
 */
import { parseCronExpression } from "cron-schedule";

/** Which minutes an expression names. */
export interface CronTimes {
  minutes: ReadonlySet<number>;
  hours: ReadonlySet<number>;
  /** Days of the month. */
  days: ReadonlySet<number>;
  /** 0 is January. */
  months: ReadonlySet<number>;
  /** 0 is Sunday. */
  weekdays: ReadonlySet<number>;
}

const MINUTE_MS = 60_000;
const ALL_DAYS = 31;
const ALL_WEEKDAYS = 7;
/** The days of each month, in a leap year. */
const MONTH_DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/** A number, a range, a list of those, or steps; names of three letters for months and weekdays. */
const VALUE = "(?:\\d{1,2}|[A-Za-z]{3})";
const ITEM = `(?:\\*(?:/\\d{1,2})?|${VALUE}(?:-${VALUE}(?:/\\d{1,2})?)?)`;
const FIELD = new RegExp(`^${ITEM}(?:,${ITEM})*$`);

/**
 * Reads `minute hour day-of-month month day-of-week`. Where both kinds of days are restricted, either
 * is enough, as in every cron. 0 and 7 are Sunday.
 *
 * @throws {Error} saying what is wrong
 */
export function parseCron(expression: string): CronTimes {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5) throw new Error(`it has ${fields.length} fields instead of five`);
  // The library reads "5x" as 5, and "5/10" as well.
  const bad = fields.find((field) => !FIELD.test(field));
  if (bad !== undefined) throw new Error(`"${bad}" cannot be read`);
  const parsed = parseCronExpression(fields.join(" "));
  const times: CronTimes = {
    minutes: new Set(parsed.minutes),
    hours: new Set(parsed.hours),
    days: new Set(parsed.days),
    months: new Set(parsed.months),
    weekdays: new Set(parsed.weekdays),
  };
  if (!happens(times)) throw new Error("no such date exists");
  return times;
}

/** Minutes that match, from `after` (exclusive) to `until` (inclusive): epoch ms, oldest first. */
export function minutesDue(times: CronTimes, after: number, until: number): number[] {
  const due: number[] = [];
  const first = (Math.floor(after / MINUTE_MS) + 1) * MINUTE_MS;
  for (let at = first; at <= until; at += MINUTE_MS) if (matches(times, new Date(at))) due.push(at);
  return due;
}

function matches(times: CronTimes, at: Date): boolean {
  return (
    times.minutes.has(at.getUTCMinutes()) &&
    times.hours.has(at.getUTCHours()) &&
    times.months.has(at.getUTCMonth()) &&
    matchesDay(times, at)
  );
}

function matchesDay({ days, weekdays }: CronTimes, at: Date): boolean {
  const day = days.has(at.getUTCDate());
  const weekday = weekdays.has(at.getUTCDay());
  const both = days.size < ALL_DAYS && weekdays.size < ALL_WEEKDAYS;
  return both ? day || weekday : day && weekday;
}

function happens({ days, months, weekdays }: CronTimes): boolean {
  if (weekdays.size < ALL_WEEKDAYS) return true;
  return [...months].some((month) => [...days].some((day) => day <= (MONTH_DAYS[month] ?? 0)));
}
