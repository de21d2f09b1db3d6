/** The lines on standard error under `--json`: one object each, with one key. */
import { EXIT } from '../../errors.js'
import { integer, orNull, record, text } from './shapes.js'

export const ERROR_SCHEMA = record('One line for each error.', {
  error: record('Error', {
    code: text('Stable code: from the service if it sent one, else from the list in docs/exit-codes.md'),
    message: text('Text for people; may change'),
    hint: orNull(text('Next step, on one line')),
    http_status: orNull(integer('HTTP status of the response that caused the error')),
    exit_code: {
      description: 'Exit code of the command if this is its only error',
      enum: Object.values(EXIT).filter((code) => code !== EXIT.ok),
    },
    run_id: orNull(text('Run that the error is about, if one exists')),
  }),
})

export const WARNING_SCHEMA = record('One line for each warning. The command continues.', {
  warning: record('Warning', { message: text('Text for people; may change') }),
})

export const DEBUG_SCHEMA = record(
  'With --debug: one line for each request and response, and the stack trace of an error.',
  {
    debug: text('Text for people; may change and may have several lines'),
  },
)
