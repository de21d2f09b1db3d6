/** `rushes models`: the parameters of the models, as a table or as JSON Schema. */
import type { Command } from 'commander'
import { usageError } from '../../errors.js'
import { KINDS, type Kind, MODEL_INPUTS } from '../../protocol/models.js'
import { nearest } from '../../protocol/nearest.js'
import { describeValues, isRequired, parametersOf } from '../../protocol/parameters.js'
import type { Context } from '../context/context.js'
import { flagOf } from '../flags/model-flags.js'
import { alignedRow, tabRow, widthsOf } from '../terminal/cell-rows.js'
import type { CommandEnvironment } from './command-environment.js'

export function register(command: Command, { run }: CommandEnvironment, showModels = modelsCommand): void {
  command
    .argument('[name]', `one model: ${KINDS.join(' or ')}`)
    .action((name: string | undefined) => run(command, (ctx) => showModels(ctx, name)))
}

export async function modelsCommand({ out }: Context, name: string | undefined): Promise<number> {
  const kinds = name === undefined ? KINDS : [kindOf(name)]
  if (out.mode.json) {
    const schemas = Object.fromEntries(kinds.map((kind) => [kind, schemaOf(kind)]))
    out.json(name === undefined ? schemas : schemas[kinds[0] ?? ''], out.stdoutIsTerminal ? 2 : undefined)
    return 0
  }
  const rows = kinds.flatMap(rowsOf)
  const widths = widthsOf(rows, out.columns)
  for (const row of rows) out.line(out.stdoutIsTerminal ? alignedRow(row, widths) : tabRow(row))
  return 0
}

function kindOf(name: string): Kind {
  const kind = KINDS.find((each) => each === name)
  if (kind !== undefined) return kind
  const near = nearest(name, KINDS)
  throw usageError(
    `There is no model "${name}"${near === undefined ? '' : `; the nearest is ${near}`}.`,
    `The models: ${KINDS.join(', ')}.`,
  )
}

const schemaOf = (kind: Kind) => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...MODEL_INPUTS[kind],
})

/** Model, flag, whether it is required, allowed values, meaning. */
const rowsOf = (kind: Kind): readonly (readonly string[])[] =>
  Object.entries(parametersOf(kind)).map(([name, schema]) => [
    kind,
    flagOf(name),
    isRequired(kind, name) ? 'required' : 'optional',
    describeValues(schema, ' ').replace(/^a /, ''),
    schema.description,
  ])
