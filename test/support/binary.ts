/** Runs the real program in separate processes, with a temporary home and no other environment variables. */
import { type ChildProcess, spawn } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { removeFolder } from '../../src/host/own-folder.js'
import { afterFile } from './after-file.js'
import { misfitsOf } from './schemas.js'
import { until } from './until.js'

export const BINARY = fileURLToPath(new URL('../../bin/rushes.cjs', import.meta.url))
export const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))

export type Environment = Readonly<Record<string, string | undefined>>

/** A user on a machine: a home, a working folder, and environment variables. */
export interface Place {
  readonly home: string
  readonly folder: string
  readonly env: Environment
  /** Returns the same user with further variables. `undefined` removes a variable. */
  with(more: Environment): Place
}

interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly pid: number
  readonly stdin: Writable
  readonly stdout: Readable
  readonly ended: Promise<Ended>
  /** Output so far. */
  readonly printed: { readonly stdout: string; readonly stderr: string }
  kill(signal: NodeJS.Signals): void
  /** Resolves with the match as soon as the output matches. */
  prints(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<RegExpExecArray>
}

export interface Service extends Place {
  readonly url: string
  readonly apiKey: string
  readonly data: string
  readonly process: Running
}

/** Creates a new place. After the tests of the file, ends the processes started in it and removes it. */
export function createPlace(): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'rushes-e2e-')))
  const [home, folder, bin] = [join(root, 'home'), join(root, 'work'), join(root, 'bin')]
  for (const each of [home, folder, bin]) mkdirSync(each)
  // The tests of a file may run concurrently and share a place.
  afterFile(() => removeFolder(root))
  putOnPath(bin)
  const path = [bin, dirname(process.execPath), process.env.PATH].join(delimiter)
  return placeOf(home, folder, { PATH: path, HOME: home, SHELL: '/bin/sh' })
}

/** The user with the state folder in which `runCli` and `rowsOf` look for the state of a home. */
export const withStateOfCli = (place: Place): Place =>
  place.with({ RUSHES_STATE_DIR: join(place.home, 'state') })

/** Adds `rushes` for shell scripts. It replaces the shell's process, so that signals reach the program. */
function putOnPath(bin: string): void {
  const file = join(bin, 'rushes')
  writeFileSync(file, `#!/bin/sh\nexec ${quoted(process.execPath)} ${quoted(BINARY)} "$@"\n`)
  chmodSync(file, 0o755)
}

const placeOf = (home: string, folder: string, env: Environment): Place => ({
  home,
  folder,
  env,
  with: (more) => placeOf(home, folder, { ...env, ...more }),
})

interface StartOptions {
  readonly stdin?: string | 'ignore'
  /** File descriptor used as standard output. */
  readonly stdout?: number
  readonly command?: string
}

/** Starts the program, or another command. Kills it at the end of the test file. */
export function start(
  place: Pick<Place, 'folder' | 'env'>,
  words: readonly string[],
  options: StartOptions = {},
): Running {
  const { command, stdin = '', stdout = 'pipe' } = options
  const [file, args] = command === undefined ? [process.execPath, [BINARY, ...words]] : [command, [...words]]
  const child = spawn(file, args, {
    cwd: place.folder,
    env: Object.fromEntries(Object.entries(place.env).filter(([, value]) => value !== undefined)),
    stdio: [stdin === 'ignore' ? 'ignore' : 'pipe', stdout, 'pipe'],
  })
  afterFile(() => endNow(child))
  child.stdin?.on('error', () => {})
  if (stdin !== '' && stdin !== 'ignore') child.stdin?.end(stdin)
  return running(child)
}

/** Starts Node with a module, or with other words. */
export const startNode = (words: readonly string[], stdin: StartOptions['stdin'] = 'ignore'): Running =>
  start(createPlace(), words, { command: process.execPath, stdin })

async function endNow(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await new Promise((resolve) => child.once('exit', resolve))
}

function running(child: ChildProcess): Running {
  const printed = { stdout: '', stderr: '' }
  let closed = false
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
    })
  }
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      closed = true
      resolve({ code, signal, ...printed })
    })
  })
  ended.catch(() => {})
  return {
    pid: child.pid ?? 0,
    stdin: child.stdin as Writable,
    stdout: child.stdout as Readable,
    ended,
    printed,
    kill: (signal) => void child.kill(signal),
    prints: (stream, pattern) =>
      until(`${pattern} on ${stream}`, () => {
        const found = pattern.exec(printed[stream]) ?? undefined
        if (found === undefined && closed) throw new Error(`it ended without ${pattern}: ${printed.stderr}`)
        return found
      }),
  }
}

/** Runs the program to its end. Checks its `--json` output against the published schemas. */
export async function rushes(place: Place, words: readonly string[], options?: StartOptions): Promise<Ended> {
  const ended = await start(place, words, { stdin: 'ignore', ...options }).ended
  expect(misfitsOf(words, ended)).toEqual([])
  return ended
}

/** Runs a bash script to its end. */
export const bash = (place: Place, script: string): Promise<Ended> =>
  start(place, ['-c', script], { command: 'bash', stdin: 'ignore' }).ended

export const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

const MODELS = { RUSHES_IMAGE_MODEL: 'rushes/preview-image', RUSHES_VIDEO_MODEL: 'rushes/preview-video' }

/** Resolves with the URL of a started `rushes serve --json`. */
export async function urlOf(service: Running): Promise<string> {
  const [line] = await service.prints('stdout', /^\{.*\}$/m)
  return (JSON.parse(line) as { url: string }).url
}

export const isReady = (url: string): Promise<boolean> =>
  fetch(new URL('/readyz', url)).then(
    ({ status }) => status === 200,
    () => false,
  )

/** Starts `rushes serve` on a free port. Returns a place whose settings name the service. */
export async function serve(place: Place, words: readonly string[] = []): Promise<Service> {
  const service = start(place, ['serve', '--port', '0', '--json', ...words], { stdin: 'ignore' })
  const [line] = await service.prints('stdout', /^\{.*\}$/m)
  const { url, data, api_key: apiKey = '' } = JSON.parse(line)
  const own = place.with({ RUSHES_BASE_URL: url, RUSHES_API_KEY: apiKey, ...MODELS })
  return { ...own, url, data, apiKey, process: service }
}

/** Returns the processes with this home whose command line matches. Works only on Linux. */
export function processesOf({ home }: Place, pattern: RegExp): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => readProc(pid, 'environ').split('\0').includes(`HOME=${home}`))
    .filter((pid) => pattern.test(readProc(pid, 'cmdline').replaceAll('\0', ' ')))
    .map(Number)
}

function readProc(pid: string, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // The process has ended in the meantime.
    return ''
  }
}

/** Returns the relative path of every file below a folder. */
export const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()
