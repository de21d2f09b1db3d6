/** `rushes models`: prints the parameters of the models, as a table or as JSON Schema. */
import type { Command } from 'commander'
import { usageError } from '../../errors.js'
import { KINDS, type Kind, MODEL_INPUTS } from '../../protocol/models.js'
import { builtInSchema, describeValues, flagOf } from '../../protocol/parameters.js'
import { didYouMean } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { orList } from '../flags/values.js'
import { printTable } from '../terminal/table.js'

export function register(command: Command, { run }: CommandEnvironment, showModels = modelsCommand): void {
  command
    .argument('[name]', `Only this model: ${orList(KINDS)}`)
    .action((name: string | undefined) => run(command, (ctx) => showModels(ctx, name)))
}

export async function modelsCommand({ out }: Context, name: string | undefined): Promise<number> {
  const kinds = name === undefined ? KINDS : [kindOf(name)]
  if (out.mode.json) {
    const schemas = Object.fromEntries(kinds.map((kind) => [kind, schemaOf(kind)]))
    out.json(name === undefined ? schemas : schemas[kinds[0] ?? ''], out.stdoutIsTerminal ? 2 : undefined)
    return 0
  }
  printTable(out, HEADER, kinds.flatMap(rowsOf), ['REQUIRED'])
  return 0
}

function kindOf(name: string): Kind {
  const kind = KINDS.find((each) => each === name)
  if (kind !== undefined) return kind
  throw usageError(
    `Unknown model "${name}".${didYouMean(name, KINDS)} Use ${orList(KINDS)}.`,
    'For another published model, use `rushes run model <provider/name> --input <json>`.',
  )
}

const schemaOf = (kind: Kind) => ({
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...MODEL_INPUTS[kind],
})

const HEADER = ['MODEL', 'FLAG', 'REQUIRED', 'VALUES', 'DESCRIPTION']

/** Cells: model, flag, whether the flag is required, allowed values, meaning. */
const rowsOf = (kind: Kind): readonly (readonly string[])[] =>
  Object.entries(builtInSchema(kind).properties).map(([name, schema]) => [
    kind,
    flagOf(name),
    builtInSchema(kind).required.includes(name) ? 'required' : 'optional',
    describeValues(schema, ' ').replace(/^a /, ''),
    schema.description,
  ])
