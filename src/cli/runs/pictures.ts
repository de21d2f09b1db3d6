/** `--show`: draws the results of a command in the terminal, each one below its line. */
import { execFile } from 'node:child_process'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { folderTarget } from '../../download/file-names.js'
import { withTimeout } from '../../host/abort.js'
import type { Fetch } from '../../host/http.js'
import { makeOwnFolder } from '../../host/own-folder.js'
import { describeReason } from '../../host/system-error.js'
import type { PictureRequest } from '../../preview/terminal-picture.js'
import { printable } from '../../protocol/text.js'
import { rendererEnvironment } from '../../service/engines/process.js'
import type { Context } from '../context/context.js'
import { type Env, variable } from '../process/io.js'
import type { RunRecord } from '../terminal/run-json.js'
import { formFor } from '../terminal/terminal-graphics.js'

/** For each result, with its download. */
const TIMEOUT_MS = 60_000

interface DrawnFile {
  readonly path: string
  readonly content_type: string
}

export interface Pictures {
  /** Prints the lines of a run, and draws the result below each. Never rejects. */
  printRun(record: RunRecord, lines: readonly string[]): Promise<void>
  /** Draws a picture, or the first frame of a video. A note says why, if that fails. Never rejects. */
  draw(file: DrawnFile): Promise<void>
}

/** Returns why no picture may be drawn. */
function obstacleOf({ out, env, stdout, stderr }: Context): string | undefined {
  if (stdout.isTTY !== true || stderr.isTTY !== true) return 'the output does not go to a terminal'
  if (variable(env, 'CI') !== undefined) return 'CI is set'
  return out.style.err.level === 0 || env.TERM === 'dumb' ? 'colour is off' : undefined
}

/**
 * Returns undefined, after a note that says why, where no pictures are drawn. Call this while the cursor is on an empty
 * line. `fetch` is for results that are not downloaded.
 */
export async function openPictures(ctx: Context, fetch?: Fetch): Promise<Pictures | undefined> {
  const { out, env, stderr, clock } = ctx
  const { first } = ctx.interrupts
  if (out.mode.json || out.mode.quiet) return undefined
  const obstacle = obstacleOf(ctx)
  if (obstacle !== undefined) {
    out.note(`Pictures are not drawn: ${obstacle}.`)
    return undefined
  }
  const draws = ctx.parts.drawPicture ?? drawPicture

  async function drawFile({ path, content_type }: DrawnFile, signal: AbortSignal): Promise<void> {
    const { columns, rows } = stderr
    const form = formFor(env, { columns, rows })
    out.picture(await draws({ path, isVideo: content_type.startsWith('video/'), ...form }, signal, env))
  }

  async function drawUrl(url: string, { id, kind }: RunRecord, signal: AbortSignal): Promise<void> {
    const folder = await makeOwnFolder(tmpdir(), 'rushes-picture-')
    try {
      const downloader = await ctx.downloader(fetch ?? (await ctx.fetch()))
      const [result] = await downloader.download([{ url, runId: id, kind }], {
        target: folderTarget(folder.path),
        signal,
      })
      if (result?.ok !== true) throw result?.error
      await drawFile(result.file, signal)
    } finally {
      await folder.remove().catch(() => {})
    }
  }

  async function orNote(name: string, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const reason = () => new Error('it took more than 60 s')
    try {
      await withTimeout(work, { timeoutMs: TIMEOUT_MS, reason, clock, signal: first })
    } catch (error) {
      if (!first.aborted) out.note(`${name} is not drawn: ${describeReason(error)}.`)
    }
  }

  const draw = (file: DrawnFile) => orNote(file.path, (signal) => drawFile(file, signal))
  return {
    async printRun(record, lines) {
      for (const [index, line] of lines.entries()) {
        out.line(printable(line))
        const file = record.files[index]
        if (file !== undefined) await draw(file)
        else await orNote('The result', (signal) => drawUrl(line, record, signal))
      }
    },
    draw,
  }
}

const MAX_CODE_BYTES = 64 * 1_048_576

/**
 * Returns the escape codes of a picture. Rejects with the reason in plain words. Draws in a separate process, because only
 * its end stops a decoder, and a crash of the decoder ends it.
 */
async function drawPicture(request: PictureRequest, signal: AbortSignal, env: Env): Promise<string> {
  const words = [fileURLToPath(new URL('./picture.cjs', import.meta.url)), JSON.stringify(request)]
  const options = { env: rendererEnvironment(env), maxBuffer: MAX_CODE_BYTES, signal, windowsHide: true }
  try {
    return (await promisify(execFile)(process.execPath, words, options)).stdout
  } catch (error) {
    signal.throwIfAborted()
    const [reason] = (error as { stderr: string }).stderr.split('\n')
    throw new Error(reason || 'the decoder crashed', { cause: error })
  }
}
