/** The lines on standard error under `--json`: one object each, with one key. */
import { EXIT } from '../../errors.js'
import { integer, orNull, record, text } from './shapes.js'

export const ERROR_SCHEMA = record('One line for each error.', {
  error: record('the error', {
    code: text('stable: the code of the service if it sent one, else one of docs/exit-codes.md'),
    message: text('for people; it may change'),
    hint: orNull(text('what to do next, on one line')),
    http_status: orNull(integer('HTTP status of the response that caused the error')),
    exit_code: {
      description: 'exit code of the command if this is its only error',
      enum: Object.values(EXIT).filter((code) => code !== EXIT.ok),
    },
    run_id: orNull(text('the run that the error is about, if one exists')),
  }),
})

export const WARNING_SCHEMA = record('One line for each warning. The command continues.', {
  warning: record('the warning', { message: text('for people; it may change') }),
})

export const DEBUG_SCHEMA = record(
  'With --debug: one line for each request and response, and the stack trace of an error.',
  {
    debug: text('for people; it may change; may have several lines'),
  },
)
