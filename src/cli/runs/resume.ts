/** The command that picks a run up again, as it is to be typed. */
import type { Globals } from '../globals.js'

const quoted = (word: string): string =>
  /^[\w.:/@%+-]+$/.test(word) && !word.startsWith('-') ? word : `'${word.replaceAll("'", `'\\''`)}'`

export function resumeCommand(
  globals: Pick<Globals, 'local' | 'profile' | 'baseUrl'>,
  id: string,
  download: boolean,
): string {
  return [
    'rushes wait',
    ...(globals.local ? ['--local'] : []),
    ...(globals.profile === undefined ? [] : ['--profile', quoted(globals.profile)]),
    ...(globals.baseUrl === undefined ? [] : ['--base-url', quoted(globals.baseUrl)]),
    ...(download && !globals.local ? ['-d'] : []),
    ...(id.startsWith('-') ? ['--'] : []),
    quoted(id).replace(/^'(-[\w.-]*)'$/, '$1'),
  ].join(' ')
}
