/** Runs the real binary, or a bash script that calls `rushes`, as a child process whose output a test can wait for. */
import { type ChildProcess, spawn } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { BINARY } from './binary.js'
import { PATIENCE_MS } from './patience.js'
import { temporaryFolder } from './service.js'

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface Started {
  readonly child: ChildProcess
  readonly home: string
  readonly ended: Promise<Ended>
  /**
   * Resolves when standard output and error together match. Rejects after one minute, or when the process has ended.
   */
  prints(pattern: RegExp): Promise<string>
}

export interface StartOptions {
  readonly home?: string
  readonly env?: Readonly<Record<string, string>>
}

export const start = (argv: readonly string[], options: StartOptions = {}): Started =>
  startProcess(process.execPath, [BINARY, ...argv], options)

/** Runs a bash script in which `rushes` is the binary. */
export const shell = (script: string, options: StartOptions = {}): Started =>
  startProcess('bash', ['-c', `rushes() { '${process.execPath}' '${BINARY}' "$@"; }\n${script}`], options)

function startProcess(
  command: string,
  words: readonly string[],
  { home = temporaryFolder(), env }: StartOptions,
): Started {
  const child = spawn(command, words, {
    cwd: home,
    env: { PATH: process.env.PATH ?? '', HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const printed = { stdout: '', stderr: '' }
  const listeners = new Set<() => void>()
  const notify = () => {
    for (const listener of listeners) listener()
  }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text
      notify()
    })
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code, signal) => {
      resolve({ code, signal, ...printed })
      notify()
    })
  })
  return {
    child,
    home,
    ended,
    prints: (pattern) =>
      new Promise((resolve, reject) => {
        const end = (settle: () => void) => {
          clearTimeout(limit)
          listeners.delete(checkOutput)
          settle()
        }
        const checkOutput = () => {
          const text = `${printed.stdout}${printed.stderr}`
          if (pattern.test(text)) end(() => resolve(text))
          else if (child.exitCode !== null) end(() => reject(new Error(`ended without ${pattern}: ${text}`)))
        }
        const limit = setTimeout(
          () => end(() => reject(new Error(`${pattern} was not printed: ${printed.stderr}`))),
          PATIENCE_MS,
        )
        listeners.add(checkOutput)
        checkOutput()
      }),
  }
}
