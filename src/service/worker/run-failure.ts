/** Why a run failed, in the words that whoever made it reads. */

import { messageOf } from '../../errors.js'
import { isSystemError } from '../../host/system-error.js'
import { shortened } from '../../protocol/text.js'
import type { RendererCrashed } from '../engines/renderer-crashed.js'
import type { CrashLimit } from '../store/contract.js'
import type { RunFailure } from '../stored-run.js'
import { CRASH_LIMIT } from './worker-lease.js'

const MAX_MESSAGE_LENGTH = 2_500

/** Why a render was stopped: by its deadline. Closing aborts without one. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'

  constructor(limitMs: number) {
    super(`The renderer took longer than ${sayLimit(limitMs)}.`)
  }
}

const sayLimit = (ms: number): string =>
  ms % 60_000 === 0 ? `${ms / 60_000} minute${ms === 60_000 ? '' : 's'}` : `${ms / 1_000} s`

export function failureOf(error: unknown): RunFailure {
  const message = messageOf(error)
  const said = isSystemError(error)
    ? `The service could not make or keep the files (${error.code}).`
    : message
  return {
    code: 'render_failed',
    message: shortened(
      said.trim() === '' ? 'The renderer failed without a message.' : said,
      MAX_MESSAGE_LENGTH,
    ),
  }
}

/** The third death is the run's end, and says what the renderer said last. */
export const crashLimitFor = ({ stderrTail }: RendererCrashed): CrashLimit =>
  stderrTail === ''
    ? CRASH_LIMIT
    : {
        ...CRASH_LIMIT,
        failure: {
          ...CRASH_LIMIT.failure,
          message: shortened(
            `${CRASH_LIMIT.failure.message} Its last words: ${stderrTail}`,
            MAX_MESSAGE_LENGTH,
          ),
        },
      }
