/** An error as lines for people and as a JSON object for scripts. */
import type { RushesError } from '../../errors.js'
import { onOneLine, printable } from '../../protocol/text.js'
import type { Style } from './style.js'

/** What happened, then what to do. The run id is added unless the message contains it. */
export function errorLines(error: RushesError, style: Style): readonly string[] {
  const { runId } = error
  const id = runId === undefined ? undefined : printable(runId)
  const said = printable(error.message)
  const subject = id === undefined || said.includes(id) ? '' : `${id}: `
  const hint = error.hint?.split('\n').map((line) => `  ${printable(line.trim())}`) ?? []
  return [`${style.red('error:')} ${subject}${said}`, ...hint]
}

export interface ErrorJson {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly hint: string | null
    readonly http_status: number | null
    readonly exit_code: number
    readonly run_id: string | null
  }
}

export const errorJson = (error: RushesError): ErrorJson => ({
  error: {
    code: error.code,
    message: error.message,
    hint: error.hint === undefined ? null : onOneLine(error.hint),
    http_status: error.httpStatus ?? null,
    exit_code: error.exitCode,
    run_id: error.runId ?? null,
  },
})
