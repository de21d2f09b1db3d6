/**
 * Runs a shell command of the user as an engine (`--engine video=<command>`, or a document with `type: command`). The
 * command reads the input as JSON from standard input, and writes the outputs as files into the empty folder
 * `RUSHES_OUTPUT_DIR`. A non-zero exit code fails the run with the end of standard error. The command runs with `sh -c`
 * in the folder in which its run was accepted.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { constants } from 'node:os'
import { join, resolve } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { fileTypeFromFile } from 'file-type'
import { onAbort, settlesWithin } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import { replaceFile } from '../../../host/files.js'
import { holdFolder, makeOwnFolderAt, type OwnFolder } from '../../../host/own-folder.js'
import { writeJson } from '../../../protocol/json.js'
import { mayCost } from '../../../protocol/price.js'
import { shortened } from '../../../protocol/text.js'
import { type Engine, type RenderedFile, RendererCrashed, type RenderJob } from '../engine.js'
import { type ChildEnvironment, commandEnvironment, readStderrTail } from '../process.js'
import type { ReadEngine } from '../settings.js'
import { createOnceEngine } from '../upstream/outcome.js'

export const readCommand: ReadEngine = (settings, document) => {
  const command = settings.requiredText('command')
  const folder = settings.text('folder')
  if (folder !== undefined && !existsSync(folder))
    settings.report(['folder'], `names "${shortened(folder, 200)}", which does not exist`)
  if (!hasShell())
    settings.report(
      ['command'],
      'needs the program sh; install Git for Windows and add its sh to PATH, or use WSL',
    )
  return ({ env, urls, clock }) => {
    const engine = createCommandEngine({ command: command ?? 'false', folder, env, urls, clock })
    return createOnceEngine(
      { costs: mayCost(document) },
      { endpoint: 'command', clock, send: engine.render, publish: async (files) => files },
    )
  }
}

/** Windows itself has no `sh`. */
const hasShell = (): boolean =>
  process.platform !== 'win32' ||
  (process.env.PATH ?? '').split(';').some((folder) => existsSync(join(folder, 'sh.exe')))

export interface CommandEngineOptions {
  /** The command, as typed in a shell. */
  readonly command: string
  /** Its working directory. Default: that of the service. */
  readonly folder?: string | undefined
  /** Environment of the service. The service's variables, and variables that contain one of the `urls`, are removed. */
  readonly env: ChildEnvironment
  /** URLs of the service's database and storage. */
  readonly urls?: readonly (string | undefined)[]
  readonly clock: Clock
}

export function createCommandEngine({ command, folder, env, urls, clock }: CommandEngineOptions): Engine {
  const childEnv = commandEnvironment(env, urls)
  return {
    /** Settles after every process of the command has ended. */
    async render(requested) {
      // Absolute, because the command may change its working directory.
      const job = { ...requested, folder: resolve(requested.folder) }
      const outputFolder = await holdFolder(job.folder)
      const inputFolder = await makeOwnFolderAt(`${job.folder}-input`)
      try {
        const input = await moveMedia(inputFolder.path, job)
        job.signal.throwIfAborted()
        await job.onSend?.()
        const own = environmentOf(childEnv, job, inputFolder.path)
        const group = startGroup({ command, folder }, own, `${writeJson(input)}\n`, clock)
        const removeListener = onAbort(job.signal, group.end)
        const end = await group.ended.finally(removeListener)
        job.signal.throwIfAborted()
        checkEnd(end)
        const outputs = await takeOutputs(outputFolder)
        if (outputs.length > 0) return outputs
        throw new Error(withStderr('The engine wrote no output file.', end.stderrTail))
      } finally {
        // If this fails, a later start removes the input folder with the worker's folder.
        await inputFolder.remove().catch(() => {})
      }
    },
  }
}

/** A shell exits with 128 + n when signal n ended its command. */
const SIGNAL_EXIT_BASE = 128

/**
 * Throws an error for a non-zero exit code, which fails the run. Throws `RendererCrashed` if a signal ended the command
 * (out of memory, or `kill`): the run is then retried a few times.
 */
function checkEnd({ code, signal, stderrTail }: CommandEnd): void {
  if (code === 0) return
  const by = signal ?? signalOf(code)
  if (by !== undefined) throw new RendererCrashed(`the engine was killed by ${by}`, stderrTail)
  throw new Error(withStderr(`The engine ended with exit code ${code}.`, stderrTail))
}

const signalOf = (code: number | null): string | undefined =>
  Object.entries(constants.signals).find(([, number]) => SIGNAL_EXIT_BASE + number === code)?.[0]

const withStderr = (sentence: string, stderrTail: string): string =>
  stderrTail === '' ? sentence : `${sentence.replace(/\.$/, '')}: ${stderrTail}`

/**
 * Moves the media of the run into the command's input folder, as `01.png`, `02.jpg` and `mask-01.png`, and returns the input with
 * their paths. Overwrites `image_files`: a request must not be able to name files on this machine.
 */
async function moveMedia(folder: string, { input, references, media = {} }: RenderJob): Promise<object> {
  const moved: Record<string, unknown> = { ...input, image_files: await moveFiles(folder, references, '') }
  for (const [name, paths] of Object.entries(media)) {
    const files = await moveFiles(folder, paths, `${name}-`)
    moved[name] = Array.isArray(input[name]) ? files : files[0]
  }
  return moved
}

/** Throws when a file is missing, because the output would then differ from the request. */
async function moveFiles(
  folder: string,
  sources: RenderJob['references'],
  prefix: string,
): Promise<readonly string[]> {
  const paths: string[] = []
  for (const [index, source] of sources.entries()) {
    if (source === undefined) throw new Error(`Reference image ${index + 1} could not be read.`)
    const extension = (await fileTypeFromFile(source).catch(() => undefined))?.ext ?? 'bin'
    const path = join(folder, `${prefix}${String(index + 1).padStart(2, '0')}.${extension}`)
    await replaceFile(source, path)
    paths.push(path)
  }
  return paths
}

/** `env` is the result of `commandEnvironment`. */
const environmentOf = (env: ChildEnvironment, job: RenderJob, inputFolder: string): ChildEnvironment => ({
  ...env,
  RUSHES_OUTPUT_DIR: job.folder,
  RUSHES_INPUT_DIR: inputFolder,
  RUSHES_KIND: job.kind,
  ...(job.run && { RUSHES_RUN_ID: job.run.id, RUSHES_MODEL: job.run.model }),
})

/**
 * Returns the outputs, sorted by name, with numbers by value: `frame-2` before `frame-10`. Skips hidden files, empty
 * files, links and folders. Throws `FolderReplaced`.
 */
async function takeOutputs(folder: OwnFolder): Promise<readonly RenderedFile[]> {
  const outputs: RenderedFile[] = []
  for (const name of [...(await folder.names())].sort(byName)) {
    if (name.startsWith('.')) continue
    const bytes = (await folder.takeFile(name)) ?? 0
    if (bytes > 0) outputs.push({ name, contentType: await contentTypeOf(folder.entry(name)) })
  }
  return outputs
}

const natural = new Intl.Collator('en', { numeric: true })
const byName = (one: string, other: string): number => natural.compare(one, other) || (one < other ? -1 : 1)

/**
 * Detects the content type from the file's bytes. Only image, video, audio and 3D model types are kept; all other files
 * are `application/octet-stream`, because a browser would run scripts of an HTML file in the service's origin.
 */
async function contentTypeOf(path: string): Promise<string> {
  const mime = (await fileTypeFromFile(path).catch(() => undefined))?.mime
  return mime !== undefined && /^(image|video|audio|model)\//.test(mime) ? mime : 'application/octet-stream'
}

interface CommandEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** The end of standard error. */
  readonly stderrTail: string
}

interface CommandGroup {
  /** Resolves when every process of the group has ended. Rejects when the command cannot be started. */
  readonly ended: Promise<CommandEnd>
  /** Sends SIGTERM to the whole group, and SIGKILL after `KILL_AFTER_MS`. */
  end(): void
}

/** Time from SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 2_000
const POLL_MS = 20
/**
 * Maximum time to wait for the end of standard error after the command ended. A process that left the group may keep
 * the stream open.
 */
const STDERR_GRACE_MS = 200

/**
 * Runs the command together with a watcher that reads from a pipe of the service. If the service is killed with
 * SIGKILL, it cannot end the group. The pipe then closes, and the watcher ends the group.
 */
const WITH_WATCHER = `
(read -r _ <&3; trap '' TERM; kill -TERM 0; sleep 2; kill -KILL 0) >/dev/null 2>&1 &
watcher=$!
exec 3<&-
sh -c "$1"
code=$?
kill -KILL "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
exit "$code"`

/**
 * Starts the command as the leader of a separate process group, so that the service can end the command with all its
 * child processes. Ctrl-C in the terminal reaches only the service, which then ends the command.
 */
function startGroup(
  { command, folder }: Pick<CommandEngineOptions, 'command' | 'folder'>,
  env: ChildEnvironment,
  input: string,
  clock: Clock,
): CommandGroup {
  const child = spawn('sh', ['-c', WITH_WATCHER, 'rushes-engine', command], {
    env: { ...env },
    detached: true,
    ...(folder !== undefined && { cwd: folder }),
    // Ignore standard output: the outputs are files.
    stdio: ['pipe', 'ignore', 'pipe', 'pipe'],
  })
  const stderrTail = readStderrTail(child.stderr)
  // A command may end without reading its input.
  child.stdin?.on('error', () => {})
  child.stdin?.end(input)
  const lifeline = child.stdio[3] as Writable & Readable
  lifeline.on('error', () => {})

  /** Returns whether the group has a member. One that has ended counts until its parent reaps it. */
  function send(signal: NodeJS.Signals | 0): boolean {
    try {
      return child.pid !== undefined && process.kill(-child.pid, signal)
    } catch {
      // The group has no members. macOS reports EPERM for a group of ended members.
      return false
    }
  }

  const isAlive = (): boolean => send(0)

  function end(): void {
    send('SIGTERM')
    clock.alarm(KILL_AFTER_MS, () => send('SIGKILL'))
  }

  async function waitForEnd(): Promise<CommandEnd> {
    const closed = once(child, 'close')
    closed.catch(() => {})
    const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
    // A background process of the command could still write to the output folder.
    if (isAlive()) end()
    for (let waitedMs = 0; isAlive() && waitedMs <= KILL_AFTER_MS; waitedMs += POLL_MS)
      await clock.sleep(POLL_MS)
    await settlesWithin(STDERR_GRACE_MS, closed, clock)
    for (const stream of [child.stdin, child.stderr, lifeline]) stream?.destroy()
    return { code, signal, stderrTail: stderrTail() }
  }

  return { ended: waitForEnd(), end }
}
