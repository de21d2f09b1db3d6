/** The command that resumes with a run, as it is to be typed. */
import { printable } from '../../protocol/text.js'
import type { Globals } from '../flags/globals.js'

/** As one word of a shell. */
export const quoted = (word: string): string => {
  if (/^[\w.:/@%+-]+$/.test(word) && !word.startsWith('-')) return word
  return printable(word) === word ? `'${word.replaceAll("'", `'\\''`)}'` : ansiQuoted(word)
}

/** For bash, zsh and ksh: the bytes of a word with characters that are not printed. */
const ansiQuoted = (word: string): string =>
  `$'${[...Buffer.from(word)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}'`

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
