/**
 * JavaScript does not look at what an object has too much: `{ memroy: 512 }` would be a sandbox with the usual memory. So the names are
 * compared here. The compiler holds each table to its interface.
 */
export type OptionNames<T> = Record<keyof Required<T>, true>;

/** A TypeError for the first option that `what` does not have. One that is undefined is not there. */
export function checkOptions<T extends object>(what: string, options: T, names: OptionNames<T>): void {
  for (const [name, value] of Object.entries(options)) {
    if (value !== undefined && !Object.hasOwn(names, name)) {
      throw new TypeError(`${what}: there is no option "${name}"; there are ${Object.keys(names).join(', ')}`);
    }
  }
}
