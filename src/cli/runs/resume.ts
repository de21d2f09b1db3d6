/** The command that resumes with a run, as it is to be typed. */
import type { Globals } from '../flags/globals.js'

/** As one word of a shell. */
export const quoted = (word: string): string =>
  /^[\w.:/@%+-]+$/.test(word) && !word.startsWith('-') ? word : `'${word.replaceAll("'", `'\\''`)}'`

export interface WayBack {
  readonly globals: Pick<Globals, 'local' | 'profile' | 'baseUrl'>
  /** Flags that say where the outputs go, as they were given. */
  readonly delivery: readonly string[]
}

/** `wait` continues to wait; `download` fetches the outputs of a finished run. */
export function resumeCommand({ globals, delivery }: WayBack, verb: 'wait' | 'download', id: string): string {
  const { local, profile, baseUrl } = globals
  // Both download to the current folder by default.
  const isImplied = local || verb === 'download'
  return [
    `rushes ${verb}`,
    ...(local ? ['--local'] : []),
    ...(profile === undefined ? [] : ['--profile', quoted(profile)]),
    ...(baseUrl === undefined ? [] : ['--base-url', quoted(baseUrl)]),
    ...delivery
      .filter((flag) => !(isImplied && flag === '-d'))
      .map((flag) => (flag.startsWith('-') ? flag : quoted(flag))),
    ...(id.startsWith('-') ? ['--'] : []),
    quoted(id).replace(/^'(-[\w.-]*)'$/, '$1'),
  ].join(' ')
}
