/** Finds the API key. There is no flag for it, which would show in `ps` and in the shell history. */

import { statSync } from 'node:fs'
import { MAX_KEY_LENGTH, parseApiKey } from '../../client/api-key.js'
import { RushesError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
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
  readonly clock: Pick<Clock, 'alarm' | 'sleep'>
  /** Whether a command for the key may write to standard error. */
  readonly showsStderr: boolean
  warn(message: string): void
}

/** Undefined when no source is set. Throws `no_api_key` when a source is set and gives no valid key. */
export async function findKey(sources: KeySources): Promise<string | undefined> {
  const { env, stored, origin } = sources
  const given = variable(env, 'RUSHES_API_KEY')
  if (given !== undefined) return parseApiKey(given, 'RUSHES_API_KEY')
  const file = variable(env, 'RUSHES_API_KEY_FILE')
  if (file !== undefined) return parseApiKey(await readKeyFile(file, sources), `the file ${file}`)
  const command = variable(env, 'RUSHES_API_KEY_COMMAND') ?? sources.fileCommand
  if (command !== undefined) {
    const { runKeyCommand } = await import('./key-command.js')
    const what = `The command for the API key (${command})`
    const line = await inTime(sources, `${what} did not end`, (signal) =>
      runKeyCommand(command, { ...sources, what, signal, maxBytes: MAX_LINE_BYTES }),
    )
    return parseApiKey(line, `the command "${command}"`)
  }
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

/** Enough to unlock a password manager by hand. */
const MAX_MINUTES = 2

const inTime = (
  { clock, signal }: KeySources,
  what: string,
  work: (signal: AbortSignal) => Promise<string>,
): Promise<string> =>
  withTimeout(work, {
    timeoutMs: MAX_MINUTES * 60_000,
    reason: () =>
      new RushesError('no_api_key', `${what} within ${MAX_MINUTES} minutes.`, {
        hint: 'If it waits for input: in a job without a terminal, set RUSHES_API_KEY instead.',
      }),
    clock,
    signal,
  })

/** With room for spaces around a key, and for one that is too long. */
export const MAX_LINE_BYTES = 2 * MAX_KEY_LENGTH

async function readKeyFile(path: string, sources: KeySources): Promise<string> {
  const failed = (how: string) => new RushesError('no_api_key', `RUSHES_API_KEY_FILE: ${how}.`)
  const late = `RUSHES_API_KEY_FILE: nothing was written to ${path}`
  // Loaded only here: most keys do not come from a file.
  const { openReadable, readFirstLine } = await import('../../host/first-line.js')
  try {
    const stats = statSync(path)
    if (process.platform !== 'win32' && stats.isFile() && (stats.mode & 0o077) !== 0)
      sources.warn(`Other users can read the key file ${path}. Run \`chmod 600 ${path}\`.`)
    const stream = await openReadable(path)
    if (stream !== undefined)
      return await inTime(sources, late, (signal) => readFirstLine(stream, MAX_LINE_BYTES, signal))
  } catch (error) {
    sources.signal.throwIfAborted()
    if (error instanceof RushesError) throw error
    throw failed(describeError(error, path))
  }
  throw failed(`${path} is not a file or a pipe`)
}
