/**
 * Runs an engine in child processes, one for each job, so that rendering does not delay responses. To abort a job, its
 * process is ended: nothing else can stop an encoder. Also what all engines in child processes need: an environment without
 * secrets, and the end of standard error.
 */
import { fork } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import { onAbort } from '../../host/abort.js'
import { type Clock, systemClock } from '../../host/clock.js'
import { describeError } from '../../host/system-error.js'
import { percentDecoded } from '../../protocol/text.js'
import {
  type Engine,
  type RemoteJob,
  type RenderedFile,
  RendererClosed,
  RendererCrashed,
  type RenderJob,
  TooMuchMemory,
} from './engine.js'
import type { FromRenderer } from './host.js'

export interface ProcessEngineOptions {
  /** A module that calls `hostEngine`. */
  readonly script: URL | string
  readonly clock?: Clock
}

export function createProcessEngine({
  script,
  clock = systemClock,
}: ProcessEngineOptions): Required<Pick<Engine, 'render' | 'close'>> {
  const env = rendererEnvironment(process.env)
  const running = new Set<Renderer>()
  let isClosed = false
  return {
    /** If the job is aborted, rejects only after the process has ended. */
    async render(job) {
      job.signal.throwIfAborted()
      if (isClosed) throw new RendererClosed()
      const renderer = startRenderer(script, env, clock, job)
      running.add(renderer)
      const forget = onAbort(job.signal, () => void renderer.end())
      try {
        return await renderer.files
      } catch (error) {
        throw isClosed && !job.signal.aborted ? new RendererClosed() : error
      } finally {
        forget()
        await renderer.end()
        running.delete(renderer)
        job.signal.throwIfAborted()
      }
    },
    async close() {
      isClosed = true
      await Promise.all([...running].map((renderer) => renderer.end()))
    },
  }
}

/** A child process that runs host.ts. */
interface Renderer {
  /** Rejects with `RendererCrashed` or `TooMuchMemory` when the process ends before its job is finished. */
  readonly files: Promise<readonly RenderedFile[]>
  /** Sends SIGTERM, and SIGKILL after `KILL_AFTER_MS`. Resolves when the process has ended. */
  end(): Promise<void>
}

/** Time from SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 1_000
const MAX_STDERR_WAIT_MS = 200

function startRenderer(
  script: URL | string,
  env: ChildEnvironment,
  clock: Clock,
  { kind, run, input, folder, references, onProgress }: RenderJob,
): Renderer {
  const child = fork(script, [], {
    env: { ...env },
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const stderrTail = readStderrTail(child.stderr)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => child.pid === undefined && resolve(describeError(error)))
    child.once('exit', (code, signal) => {
      const reason = signal ?? `exit code ${code}`
      // Wait for the rest of stderr, but not without a limit: a process that the renderer started may keep the pipe
      // open.
      child.once('close', () => resolve(reason))
      clock.alarm(MAX_STDERR_WAIT_MS, () => resolve(reason))
    })
  })
  const files = new Promise<readonly RenderedFile[]>((resolve, reject) => {
    child.on('message', (received) => {
      const message = received as FromRenderer
      if (message.type === 'progress') return onProgress?.(message.fraction)
      if (message.type === 'done') return resolve(message.files)
      if (message.type === 'failed') return reject(new Error(message.message))
      reject(new TooMuchMemory(message.maxBytes))
      // At once, because the memory use still grows.
      child.kill('SIGKILL')
    })
    void ended.then((reason) => reject(new RendererCrashed(`the renderer crashed (${reason})`, stderrTail())))
  })
  const job: RemoteJob = { kind, ...(run && { run }), input, folder, references }
  // Without a free file descriptor there is no channel. Ignore errors: if the process has ended, that rejects the job.
  if (child.connected) child.send(job, () => {})
  return {
    files,
    async end() {
      child.kill('SIGTERM')
      const disarm = clock.alarm(KILL_AFTER_MS, () => child.kill('SIGKILL'))
      await ended
      disarm()
    },
  }
}

export type ChildEnvironment = Readonly<Record<string, string | undefined>>

/**
 * Variables of the service, its database and its storage. `CREDENTIALS_DIRECTORY` contains the secrets of a systemd
 * unit. Windows ignores the case of names.
 */
const SERVICE_NAMES = /^(RUSHES_|PG|AWS_|CREDENTIALS_DIRECTORY$)/i
/** Variables whose values are also removed under any other name. */
const SECRET_NAMES = [
  'RUSHES_API_KEY',
  'RUSHES_DATABASE_URL',
  'PGPASSWORD',
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_SESSION_TOKEN',
]

/**
 * Returns the environment for the user's command. Removes the variables of the service, and variables such as
 * `DATABASE_URL` that hold a secret of the service under another name. `urls` are the URLs of the service's database
 * and storage. All other variables are kept, because the model may need them (PATH, CUDA, API keys of the model).
 */
export function commandEnvironment(
  env: ChildEnvironment,
  urls: readonly (string | undefined)[] = [],
): ChildEnvironment {
  const values = SECRET_NAMES.map((name) => env[name])
  const secrets = [...urls, ...values].filter((text): text is string => text !== undefined && text !== '')
  const passwords = secrets.flatMap(passwordsOf).filter((password) => password.length >= MIN_SECRET_LENGTH)
  const patterns = passwords.map(passwordPattern)
  // User, password and host, also of a URL with other options.
  const authorities = secrets.flatMap((text) => /:(\/\/[^/?#]*@[^/?#]*)/.exec(text)?.[1] ?? [])
  const isSecret = (value: string): boolean =>
    patterns.some((pattern) => pattern.test(value)) || authorities.some((each) => value.includes(each))
  return filtered(env, (name, value) => !SERVICE_NAMES.test(name) && !isSecret(value))
}

/** Shorter passwords are ignored: an unrelated variable may have the same value by chance. */
const MIN_SECRET_LENGTH = 8

/**
 * Returns the environment for the built-in renderer, without any secret. The renderer decodes untrusted images and
 * needs no network.
 */
export const rendererEnvironment = (env: ChildEnvironment): ChildEnvironment =>
  filtered(
    env,
    (name, value) =>
      !SERVICE_NAMES.test(name) && !NAMES_OF_SECRETS.test(name) && !URL_WITH_PASSWORD.test(value),
  )

const NAMES_OF_SECRETS = /KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|DATABASE_URL|REDIS_URL/i
const URL_WITH_PASSWORD = /:\/\/[^/\s]*:[^/\s]*@/

const filtered = (
  env: ChildEnvironment,
  isKept: (name: string, value: string) => boolean,
): ChildEnvironment =>
  Object.fromEntries(Object.entries(env).filter(([name, value = '']) => isKept(name, value)))

const isUrl = (text: string): boolean => text.includes('://')

/**
 * Matches a password within a setting (`user:password@host`, `password=…`), but not a folder of this name in a path.
 */
const passwordPattern = (password: string): RegExp =>
  new RegExp(`(?:^|[\\s:=,;'"]|//)${password.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')}(?:$|[\\s@,;'"&])`)

/** Returns the passwords in a URL, encoded and decoded. Text that is not a URL is a password itself. */
function passwordsOf(text: string): readonly string[] {
  if (!isUrl(text)) return [text]
  const inQuery = [...text.matchAll(/[?&](?:ssl)?password=([^&#]+)/g)].map(([, found = '']) => found)
  const encoded = [/:\/\/[^/?#:@]*:([^/?#]+)@/.exec(text)?.[1] ?? '', ...inQuery]
  return [...encoded, ...encoded.map(percentDecoded)]
}

const MAX_STDERR_CHARACTERS = 2_000

/**
 * Keeps the end of standard error, which usually contains the reason for a failure. Reads the whole stream, because a
 * full pipe would block the process. The returned function returns the text without control characters, from the beginning
 * of a line if possible.
 */
export function readStderrTail(stream: NodeJS.ReadableStream | null): () => string {
  let tail = ''
  let isCut = false
  stream?.setEncoding('utf8')
  stream?.on('error', () => {})
  stream?.on('data', (chunk: string) => {
    tail += chunk
    // Keep up to twice the returned length, so that not every chunk needs a copy.
    if (tail.length <= 2 * MAX_STDERR_CHARACTERS) return
    isCut = true
    tail = tail.slice(-MAX_STDERR_CHARACTERS)
  })
  return () => {
    const end = tail.slice(-MAX_STDERR_CHARACTERS)
    const isPart = isCut || end.length < tail.length
    return plainText(isPart ? end.replace(/^[^\n]*\n(?=.)/s, '') : end)
  }
}

/** Removes terminal control sequences. Keeps only the last state of a progress bar. */
const plainText = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/\r\n/g, '\n')
    .replace(/^[^\n]*\r(?=[^\n])/gm, '')
    .replace(/\t/g, ' ')
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '')
    .trim()
