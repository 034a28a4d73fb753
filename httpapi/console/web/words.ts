// Times and names in words.

// server has the State Manager's time in Unix ms: nobody reads the clock of the browser.
export const server = { now: () => NaN };

// span is a length of time, such as "4 min" or "−35 s"; "" for none.
export function span(ms: number): string {
  if (isNaN(ms)) return "";
  const sign = ms < 0 ? "−" : "", s = Math.floor(Math.abs(ms) / 1000);
  if (s < 120) return `${sign}${s}\u00a0s`;
  if (s < 7200) return `${sign}${Math.floor(s / 60)}\u00a0min`;
  return `${sign}${Math.floor(s / 3600)}\u00a0h`;
}

// distance is a bound in metres, rounded up.
export function distance(metres: number): string {
  if (metres < 1000) return `${Math.max(10, Math.ceil(metres / 10) * 10)}\u00a0m`;
  return `${(Math.ceil(metres / 100) / 10).toFixed(metres < 10e3 ? 1 : 0)}\u00a0km`;
}

const timeOfDay = new Intl.DateTimeFormat([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

// clock is a moment as a time of day, with its date if that is another day; "" for none.
export function clock(ms: number): string {
  if (isNaN(ms)) return "";
  const at = new Date(ms), day = at.toDateString() === new Date(server.now()).toDateString() ? "" : at.toLocaleDateString() + " ";
  return day + timeOfDay.format(at);
}

// local is a moment as the field of a form has it, in the browser's time zone.
export function local(ms: number): string {
  return isNaN(ms) ? "" : new Date(ms - new Date(ms).getTimezoneOffset() * 60e3).toISOString().slice(0, 19);
}

// plain is a name of the API in words: AT_RISK reads "at risk".
export function plain(name: string): string { return name.toLowerCase().replaceAll("_", " "); }
