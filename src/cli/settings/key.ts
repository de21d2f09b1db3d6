/** Finds the API key. There is no flag for it, which would show in `ps` and in the shell history. */

import { readFileSync, statSync } from 'node:fs'
import { RushesError } from '../../errors.js'
import { describeError } from '../../host/system-error.js'
import type { Env } from '../process/io.js'
import type { StoredKey } from './profile.js'
import { variable } from './table.js'

export interface KeySources {
  readonly env: Env
  /** The config file's `apiKeyCommand`. */
  readonly fileCommand: string | undefined
  readonly stored: StoredKey | undefined
  /** The origin that the key is for. */
  readonly origin: string
  readonly signal: AbortSignal
  warn(message: string): void
}

/** Undefined when no source is set. Throws `no_api_key` when a source is set and gives no valid key. */
export async function findKey(sources: KeySources): Promise<string | undefined> {
  const { env, stored, origin } = sources
  const given = variable(env, 'RUSHES_API_KEY')
  if (given !== undefined) return parseApiKey(given, 'RUSHES_API_KEY')
  const file = variable(env, 'RUSHES_API_KEY_FILE')
  if (file !== undefined) return parseApiKey(readKeyFile(file, sources.warn), `the file ${file}`)
  const command = variable(env, 'RUSHES_API_KEY_COMMAND') ?? sources.fileCommand
  if (command !== undefined)
    return parseApiKey(await runKeyCommand(command, sources), `the command "${command}"`)
  if (stored === undefined) return undefined
  if (stored.origin === origin) return parseApiKey(stored.value, 'the stored key')
  throw new RushesError(
    'no_api_key',
    `The stored API key is for ${stored.origin} and is not sent to ${origin}.`,
    {
      hint: `Store a key for ${origin} with \`rushes login --profile <name>\`, or set RUSHES_API_KEY.`,
    },
  )
}

const firstLine = (text: string): string => text.split(/\r?\n/, 1)[0]?.trim() ?? ''

/** The key without surrounding space. Throws `no_api_key` for characters that an HTTP header cannot carry. */
export function parseApiKey(text: string, from: string): string {
  const key = text.trim()
  if (key === '') throw new RushesError('no_api_key', `The API key from ${from} is empty.`)
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new RushesError(
      'no_api_key',
      `The API key from ${from} contains invalid characters (a newline, a space or a quote?).`,
    )
  return key
}

function readKeyFile(path: string, warn: KeySources['warn']): string {
  try {
    const { mode } = statSync(path)
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      warn(`The key file ${path} can be read by other users. Run: chmod 600 ${path}`)
    return firstLine(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new RushesError('no_api_key', `RUSHES_API_KEY_FILE: ${describeError(error, path)}.`)
  }
}

/** Run by the shell; it may prompt the user on the terminal. */
async function runKeyCommand(command: string, { signal, env }: KeySources): Promise<string> {
  // Loaded only here: most keys do not come from a command.
  const [{ execFile }, { promisify }] = await Promise.all([import('node:child_process'), import('node:util')])
  const [shell, flag] = process.platform === 'win32' ? ['cmd.exe', '/c'] : ['/bin/sh', '-c']
  try {
    const { stdout } = await promisify(execFile)(shell, [flag, command], { signal, env: { ...env } })
    return firstLine(stdout)
  } catch (error) {
    signal.throwIfAborted()
    const { stderr, message } = error as { stderr?: string; message: string }
    throw new RushesError(
      'no_api_key',
      `The command for the API key (${command}) failed: ${(stderr?.trim() || message).split('\n')[0]}`,
    )
  }
}
