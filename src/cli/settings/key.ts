/** Finds and checks the API key. No flag sets it: the key would show in `ps` and in the shell history. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { isatty } from 'node:tty'
import type { ApiClient } from '../../client/index.js'
import { MAX_KEY_LENGTH, parseApiKey } from '../../client/service-access.js'
import { RushesError } from '../../errors.js'
import { onAbort, raceAbort } from '../../host/abort.js'
import { isPosix } from '../../host/file-system.js'
import { describeError, describeReason } from '../../host/system-error.js'
import { type Env, FirstLine, openReadable, readFirstLine, variable } from '../process/io.js'
import type { StoredKey } from './config-file.js'

interface KeySources {
  readonly env: Env
  /** Value of `apiKeyCommand` in the config file. */
  readonly fileCommand: string | undefined
  readonly stored: StoredKey | undefined
  /** Origin that the key will be sent to. */
  readonly origin: string
  readonly signal: AbortSignal
  /** Whether the command that prints the key may write to standard error. */
  readonly showsStderr: boolean
  warn(message: string): void
}

/**
 * Returns the key, or undefined when no source is set. Throws `no_api_key` when a source is set and returns no valid
 * key.
 */
export async function findKey(sources: KeySources): Promise<string | undefined> {
  const { env, stored, origin } = sources
  const fromEnvironment = variable(env, 'RUSHES_API_KEY')
  if (fromEnvironment !== undefined) return parseApiKey(fromEnvironment, 'RUSHES_API_KEY')
  const file = variable(env, 'RUSHES_API_KEY_FILE')
  if (file !== undefined) return parseApiKey(await readKeyFile(file, sources), `the file ${file}`)
  const command = variable(env, 'RUSHES_API_KEY_COMMAND') ?? sources.fileCommand
  if (command !== undefined)
    return parseApiKey(await runKeyCommand(command, sources), `the command "${command}"`)
  if (stored === undefined) return undefined
  if (stored.origin === origin) return parseApiKey(stored.value, 'the stored key')
  throw new RushesError(
    'no_api_key',
    `The stored API key is for ${stored.origin} and is not sent to ${origin}.`,
    {
      hint: `Store a key for ${origin} with \`rushes login --profile <name> --base-url ${origin}\`, or set RUSHES_API_KEY.`,
    },
  )
}

/** Requests a run that cannot exist: for a valid key the service returns 404 `run_not_found`, at no cost. Throws its errors. */
export async function checkKey(client: ApiClient, signal: AbortSignal): Promise<void> {
  try {
    await client.get(`key-check-${randomBytes(8).toString('hex')}`, signal)
  } catch (error) {
    if (!(error instanceof RushesError && error.code === 'run_not_found')) throw error
  }
}

/** Maximum length of the line with the key, with room for spaces around the key and for a key that is too long. */
export const MAX_LINE_BYTES = 2 * MAX_KEY_LENGTH

async function readKeyFile(path: string, { signal, warn }: KeySources): Promise<string> {
  let reason = `${path} is not a file or a pipe`
  try {
    const stats = statSync(path)
    if (isPosix && stats.isFile() && (stats.mode & 0o077) !== 0)
      warn(`Other users can read the key file ${path}. Run \`chmod 600 ${path}\`.`)
    const stream = await openReadable(path)
    if (stream !== undefined) return await readFirstLine(stream, MAX_LINE_BYTES, signal)
  } catch (error) {
    signal.throwIfAborted()
    reason = describeError(error, path)
  }
  throw new RushesError('no_api_key', `RUSHES_API_KEY_FILE: ${reason}.`, {
    hint: 'Write the key into that file, or unset the variable.',
  })
}

/**
 * Runs a command, such as a password manager, and returns the first line that it prints. On a terminal the command can
 * ask the user. Without a terminal its standard input is empty, because the standard input of rushes may contain ids or
 * a prompt, and all its child processes end with it. Throws `no_api_key`, or the signal's reason.
 */
async function runKeyCommand(command: string, { env, signal, showsStderr }: KeySources): Promise<string> {
  const failed = (outcome: string) =>
    new RushesError('no_api_key', `The command for the API key (${command}) ${outcome}`, {
      hint: 'Run the command alone: it must print the key on its first line.',
    })
  signal.throwIfAborted()
  const isInteractive = isatty(0)
  // In a separate process group, an interactive command would lose access to the terminal.
  const isGroup = !isInteractive && process.platform !== 'win32'
  // Loaded only here, because most keys come from the environment.
  const { spawn } = await import('node:child_process')
  const child = spawn(command, {
    ...{ shell: true, env: { ...env }, detached: isGroup },
    stdio: [isInteractive ? 'inherit' : 'ignore', 'pipe', showsStderr ? 'inherit' : 'ignore'],
  })
  const line = new FirstLine(MAX_LINE_BYTES)
  // Reads to the end, because a command fails when it cannot write its second line.
  child.stdout?.on('data', line.add)
  const closed = once(child, 'close')
  closed.catch(() => {})
  const end = () => {
    try {
      if (isGroup && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
      else child.kill()
    } catch {
      // It has ended.
    }
  }
  const stopListening = onAbort(signal, end)
  try {
    const [code, killedBy] = await raceAbort(once(child, 'exit'), signal)
    if (isGroup) end()
    // The output of the command may still be in the pipe.
    if (!line.isWhole) await raceAbort(closed, signal)
    if (code === 0) return line.text
    throw failed(killedBy === null ? `failed with exit code ${code}.` : `was ended by ${killedBy}.`)
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof RushesError ? error : failed(`could not be started: ${describeReason(error)}.`)
  } finally {
    stopListening()
    child.stdout?.destroy()
    child.unref()
  }
}
