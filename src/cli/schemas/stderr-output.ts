/** The lines on standard error under `--json`: one object each, with one key. */
import { EXIT } from '../../errors.js'
import { integer, orNull, record, text } from './shapes.js'

export const ERROR_SCHEMA = record('One line for each error.', {
  error: record('what went wrong', {
    code: text('stable: of the service where it sent one, else one of the list of docs/exit-codes.md'),
    message: text('for people; it may change'),
    hint: orNull(text('what to do next, on one line')),
    http_status: orNull(integer('of the answer that told of it')),
    exit_code: {
      description: 'what the command ends with if this is its only error',
      enum: Object.values(EXIT).filter((code) => code !== EXIT.ok),
    },
    run_id: orNull(text('the run that it is about, once one exists')),
  }),
})

export const WARNING_SCHEMA = record('One line for each warning. The command goes on.', {
  warning: record('what should be known', { message: text('for people; it may change') }),
})

export const DEBUG_SCHEMA = record(
  'With --debug: one line for each request and answer, and the stack of an error.',
  {
    debug: text('for people; it may change; lines'),
  },
)
