/** Draws pictures in the terminal. Loaded only for `--show`. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { PictureRequest } from '../../preview/terminal-picture.js'
import { rendererEnvironment } from '../../service/engines/process.js'
import type { Env } from '../process/io.js'

const MAX_CODE_BYTES = 64 * 1_048_576

/**
 * Returns the escape codes of a picture. Rejects with the reason in plain words. Draws in a separate process, because only
 * its end stops a decoder, and a crash of the decoder ends it.
 */
export async function drawPicture(request: PictureRequest, signal: AbortSignal, env: Env): Promise<string> {
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
