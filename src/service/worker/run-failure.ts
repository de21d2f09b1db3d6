/** Why a run failed, in words for the person who created it. */

import { messageOf } from '../../errors.js'
import { FolderReplaced } from '../../host/own-folder.js'
import { isSystemError } from '../../host/system-error.js'
import { shortened } from '../../protocol/text.js'
import type { RendererCrashed } from '../engines/renderer-crashed.js'
import type { CrashLimit } from '../store/contract.js'
import type { RunFailure } from '../stored-run.js'
import { CRASH_LIMIT } from './worker-lease.js'

const MAX_MESSAGE_LENGTH = 2_500

/** The reason with which a render is aborted at its time limit. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'

  constructor(limitMs: number) {
    super(`The renderer took longer than ${formatLimit(limitMs)}.`)
  }
}

const formatLimit = (ms: number): string =>
  ms % 60_000 === 0 ? `${ms / 60_000} minute${ms === 60_000 ? '' : 's'}` : `${ms / 1_000} s`

export function failureOf(error: unknown): RunFailure {
  const message = messageFor(error)
  return {
    code: 'render_failed',
    message: shortened(
      message.trim() === '' ? 'The renderer failed without a message.' : message,
      MAX_MESSAGE_LENGTH,
    ),
  }
}

function messageFor(error: unknown): string {
  if (isSystemError(error)) return `The service could not write the output files (${error.code}).`
  if (!(error instanceof FolderReplaced)) return messageOf(error)
  const found =
    error.found === 'nothing'
      ? "The engine's output folder is gone"
      : `There is ${error.found} in place of the engine's output folder`
  return `${found}, so nothing was published. The engine must write into the folder that it gets.`
}

/** After the third crash the run fails, with the end of the renderer's stderr. */
export function crashLimitFor({ stderrTail }: RendererCrashed): CrashLimit {
  if (stderrTail === '') return CRASH_LIMIT
  const { code, message } = CRASH_LIMIT.failure
  const withStderr = shortened(`${message} End of its standard error: ${stderrTail}`, MAX_MESSAGE_LENGTH)
  return { ...CRASH_LIMIT, failure: { code, message: withStderr } }
}
