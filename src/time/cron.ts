/**
 * Cron expressions of five fields, in UTC. Read here: the libraries for it carry a scheduler that reads the
 * machine's local time, which every bot would deploy.
 *
 * @module
 */

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

const MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const WEEKDAYS = "sun mon tue wed thu fri sat".split(" ");

/**
 * Reads `minute hour day-of-month month day-of-week`. Where both kinds of days are restricted, either
 * is enough, as in every cron. 0 and 7 are Sunday.
 *
 * @throws {Error} saying what is wrong
 */
export function parseCron(expression: string): CronTimes {
  const fields = expression.trim().split(/\s+/);
  if (fields.length !== 5) {
    const count = fields.length === 1 ? "1 field" : `${fields.length} fields`;
    throw new Error(`it has ${count} instead of five`);
  }
  const bad = fields.find((field) => !FIELD.test(field));
  if (bad !== undefined) throw new Error(`"${bad}" cannot be read`);
  const [minutes = "", hours = "", days = "", months = "", weekdays = ""] = fields;
  const times: CronTimes = {
    minutes: numbersOf(minutes, 0, 59),
    hours: numbersOf(hours, 0, 23),
    days: numbersOf(days, 1, 31),
    months: new Set([...numbersOf(months, 1, 12, MONTHS, 1)].map((month) => month - 1)),
    // 7 is Sunday as well, so that a range may end with it.
    weekdays: new Set([...numbersOf(weekdays, 0, 7, WEEKDAYS)].map((day) => day % 7)),
  };
  if (!happens(times)) throw new Error("no such date exists");
  return times;
}

/** The numbers of a field. `names` stand for numbers from `first` on. */
function numbersOf(
  field: string,
  min: number,
  max: number,
  names: readonly string[] = [],
  first = 0,
): Set<number> {
  const numberOf = (text: string): number => {
    const named = names.indexOf(text.toLowerCase());
    const number = named < 0 ? Number(text) : named + first;
    if (Number.isNaN(number)) throw new Error(`"${text}" cannot be read`);
    if (number < min || number > max) throw new Error(`${text} is outside of ${min} to ${max}`);
    return number;
  };
  const numbers = new Set<number>();
  for (const item of field.split(",")) {
    const [range = "", step = "1"] = item.split("/");
    const [from = "", to = from] = range === "*" ? [String(min), String(max)] : range.split("-");
    const begin = numberOf(from);
    const end = names === WEEKDAYS && /^sun$/i.test(to) && begin > 0 ? 7 : numberOf(to);
    if (end < begin) throw new Error(`the range "${range}" runs backwards`);
    if (Number(step) === 0) throw new Error(`"${item}" has a step of 0`);
    for (let number = begin; number <= end; number += Number(step)) numbers.add(number);
  }
  return numbers;
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
