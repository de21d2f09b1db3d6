/** Quotes words for the shell of the user. */
import { printable } from '../protocol/text.js'

export type Shell = 'posix' | 'cmd' | 'powershell'

interface ShellProcess {
  readonly platform?: string
  readonly env?: Readonly<Record<string, string | undefined>>
}

/** Returns the shell of the user. On Windows, Git's bash sets SHELL, and only cmd sets PROMPT. */
export function shellOf({ platform, env }: ShellProcess): Shell {
  if (platform !== 'win32' || env?.SHELL) return 'posix'
  return env?.PROMPT ? 'cmd' : 'powershell'
}

const ownShell = (): Shell => shellOf(process)

/** Quotes a word for the shell of the user. */
export const quoteWord = (word: string, shell = ownShell()): string => {
  if (shell !== 'posix' && /^[\w.:/\\+-]+$/.test(word) && !word.startsWith('-')) return word
  if (shell === 'cmd') return `"${printable(word).replaceAll('"', '""')}"`
  if (shell === 'powershell') return `'${word.replaceAll("'", "''")}'`
  if (/^[\w.:/@%+-]+$/.test(word) && !word.startsWith('-')) return word
  return printable(word) === word ? `'${word.replaceAll("'", `'\\''`)}'` : ansiQuoted(word)
}

/** Writes a word with unprintable characters as escaped bytes, for bash, zsh and ksh. */
const ansiQuoted = (word: string): string =>
  `$'${[...new TextEncoder().encode(word)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}'`

const VARIABLE_LINES: Readonly<Record<Shell, (name: string, value: string) => string>> = {
  posix: (name, value) => `export ${name}=${quoteWord(value, 'posix')}`,
  cmd: (name, value) => `set "${name}=${value}"`,
  powershell: (name, value) => `$env:${name} = '${value.replaceAll("'", "''")}'`,
}

/** Returns the line that sets an environment variable in the shell of the user. */
export const variableLine = (name: string, value: string, shell = ownShell()): string =>
  VARIABLE_LINES[shell](name, value)
