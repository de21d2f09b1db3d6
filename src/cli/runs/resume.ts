/** Commands for the user to type next: for runs that continue, and for creates of unknown outcome. */
import { quoteWord } from '../../host/shell.js'
import { commandLine, type ServiceFlags } from '../settings/globals.js'

/**
 * Returns the command to resume: `wait` waits again, `download` downloads the outputs of finished runs, `cancel` stops
 * the runs. `all`: every unfinished run at the address. `flags`: those of the outputs.
 */
export function resumeCommand(
  globals: ServiceFlags,
  verb: 'wait' | 'download' | 'cancel',
  ids: readonly string[] | 'all',
  flags: readonly string[] = [],
): string {
  // Both commands download to the current folder by default.
  const isImplied = globals.local || verb === 'download'
  const needed = flags.filter((flag) => !(isImplied && flag === '-d'))
  return commandLine(verb, globals, [...needed, ...(ids === 'all' ? ['--all'] : idArguments(ids))])
}

const idArguments = (ids: readonly string[]): readonly string[] => [
  ...(ids.some((id) => id.startsWith('-')) ? ['--'] : []),
  ...ids.map((id) => quoteWord(id).replace(/^'(-[\w.-]*)'$/, '$1')),
]

/** How to see and to remove a row of the journal without an id. */
export const keyHint = (key: string): string =>
  `see it with \`rushes show '${key}'\`, remove it with \`rushes forget '${key}' --yes\``
