/** The command that picks a run up again, as it is to be typed. */
import type { Globals } from '../flags/globals.js'

const quoted = (word: string): string =>
  /^[\w.:/@%+-]+$/.test(word) && !word.startsWith('-') ? word : `'${word.replaceAll("'", `'\\''`)}'`

export interface WayBack {
  readonly globals: Pick<Globals, 'local' | 'profile' | 'baseUrl'>
  /** Flags that say where the outputs go, as they were given. */
  readonly delivery: readonly string[]
}

/** `wait` goes on waiting; `download` fetches what is finished. */
export function resumeCommand({ globals, delivery }: WayBack, verb: 'wait' | 'download', id: string): string {
  const { local, profile, baseUrl } = globals
  // Both download there without being told to.
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
