/** The command that resumes with runs, as it is to be typed. */
import { quoteWord } from '../../protocol/shell-word.js'
import type { Globals } from '../flags/globals.js'

export interface WayBack {
  readonly globals: Pick<Globals, 'local' | 'profile' | 'baseUrl'>
  /** Flags that say where the outputs go, as they were given. */
  readonly delivery: readonly string[]
}

/** `wait` continues to wait; `download` downloads the outputs of finished runs. `all`: every unfinished run of the address. */
export function resumeCommand(
  { globals, delivery }: WayBack,
  verb: 'wait' | 'download',
  ids: readonly string[] | 'all',
): string {
  const { local, profile, baseUrl } = globals
  // Both download to the current folder by default.
  const isImplied = local || verb === 'download'
  return [
    `rushes ${verb}`,
    ...(local ? ['--local'] : []),
    ...(profile === undefined ? [] : ['--profile', quoteWord(profile)]),
    ...(baseUrl === undefined ? [] : ['--base-url', quoteWord(baseUrl)]),
    ...delivery
      .filter((flag) => !(isImplied && flag === '-d'))
      .map((flag) => (flag.startsWith('-') ? flag : quoteWord(flag))),
    ...(ids === 'all' ? ['--all'] : wordsOf(ids)),
  ].join(' ')
}

const wordsOf = (ids: readonly string[]): readonly string[] => [
  ...(ids.some((id) => id.startsWith('-')) ? ['--'] : []),
  ...ids.map((id) => quoteWord(id).replace(/^'(-[\w.-]*)'$/, '$1')),
]
