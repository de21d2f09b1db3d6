/** The lines on standard error under `--json`: one object each, with one key. */
import { EXIT } from '../../errors.js'
import { integer, orNull, record, text } from './shapes.js'

export const ERROR_SCHEMA = record('One line for each error.', {
  error: record('the error', {
    code: text('stable; from the service, else from the list in docs/exit-codes.md'),
    message: text('for people; may change'),
    hint: orNull(text('what to do next')),
    http_status: orNull(integer('HTTP status of the response, if there was one')),
    exit_code: {
      description: 'exit code of the command if this is its only error',
      enum: Object.values(EXIT).filter((code) => code !== EXIT.ok),
    },
    run_id: orNull(text('the run concerned, if one exists')),
  }),
})

export const WARNING_SCHEMA = record('One line for each warning. The command continues.', {
  warning: record('the warning', { message: text('for people; may change') }),
})

export const DEBUG_SCHEMA = record(
  'With --debug: one line for each request and response, and the stack trace of an error.',
  {
    debug: text('for people; may change; may have several lines'),
  },
)
