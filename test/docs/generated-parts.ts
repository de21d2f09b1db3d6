/**
 * The generated parts of the docs. `npm run docs` writes each between `<!-- generated: name -->` and
 * `<!-- end -->`.
 */
import type { Command, Option } from 'commander'
import { parse } from 'yaml'
import { flagOf } from '../../src/cli/flags/model-flags.js'
import { argumentWords, fullName } from '../../src/cli/help/format-help.js'
import { globalOptions } from '../../src/cli/settings/globals.js'
import { SETTINGS } from '../../src/cli/settings/table.js'
import { EXIT, OWN_CODES } from '../../src/errors.js'
import { describeValues, KINDS, PARAMETER_NAMES, type ParameterSchema } from '../../src/protocol/models.js'
import { PROBLEMS } from '../../src/protocol/problems.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { REFUSALS } from '../../src/service/rules/refusal.js'
import { commandsUnder, everyCommand, optionsOf, read } from '../support/project.js'
import { EXIT_MEANINGS } from './exit-meanings.js'

/** Returns the page with its generated parts as the program has them now. */
export async function withGeneratedParts(page: string): Promise<string> {
  const parts = page.split(/(?<=^ *(?:# )?<!-- generated: [\w ]+ -->\n)[\s\S]*?(?=^ *(?:# )?<!-- end -->$)/m)
  const texts = await Promise.all(
    parts.map(async (part) => {
      const [, sign, name] = /(# )?<!-- generated: ([\w ]+) -->\n$/.exec(part) ?? []
      if (name === undefined) return part
      const text = await PARTS[name]?.()
      return sign === undefined ? `${part}\n${text}\n` : `${part}${text}`
    }),
  )
  return texts.join('')
}

const PARTS: Readonly<Record<string, () => string | Promise<string>>> = {
  commands: async () =>
    (await everyCommand())
      .map((command) => {
        const line = `* ${code([fullName(command), ...argumentWords(command)].join(' '))}: ${command.description().replace(/\.$/, '')}`
        const flags = shownOptions(command).map(flagCell).join(', ')
        return `${line}${flags && `. ${flags}`}\n`
      })
      .join(''),
  'action inputs': () =>
    table(
      ['input', 'meaning', 'default'],
      Object.entries(parse(read('action.yml')).inputs as Inputs).map(
        ([name, { description, default: value }]) => [code(name), description, value && code(value)],
      ),
    ),
  settings: () =>
    table(
      ['setting', 'variable', 'config key', 'default'],
      Object.values<Setting>(SETTINGS).map(({ about, environment, key, default: value }) => [
        about,
        ...[environment, key, value].map((word) => (word === undefined ? '' : code(word))),
      ]),
    ),
  parameters: () =>
    table(
      ['parameter', 'flag', ...KINDS, 'default of the previews'],
      PARAMETER_NAMES.map((name) => {
        const schemas = KINDS.map(
          (kind): ParameterSchema | undefined => PREVIEW_DOCUMENTS[kind].input.properties[name],
        )
        const defaults = new Set(
          schemas.flatMap((schema) => (schema && 'default' in schema ? [String(schema.default)] : [])),
        )
        return [
          code(name),
          code(flagOf(name)),
          ...schemas.map((schema) => (schema === undefined ? '' : describeValues(schema, ', '))),
          [...defaults].join(', '),
        ]
      }),
    ),
  'exit codes': () =>
    table(
      ['exit', 'what happened', 'what to do', 'error code'],
      Object.entries(EXIT_MEANINGS).map(([name, { happened, next }]) => {
        const exit = EXIT[name as keyof typeof EXIT]
        const codes = Object.entries(OWN_CODES).filter(
          ([own, each]) => each.exit === exit || (own === 'interrupted' && SIGNALS.includes(exit)),
        )
        return [String(exit), happened, next, codes.map(([own]) => code(own)).join(', ')]
      }),
    ),
  'run object': () => `\`\`\`json\n${JSON.stringify(exampleRun(), undefined, 1)}\n\`\`\`\n`,
  'service codes': () =>
    table(
      ['code', 'HTTP', 'exit'],
      Object.entries(PROBLEMS).map(([name, { status, exit }]) => [code(name), String(status), String(exit)]),
    ),
  'further codes': () =>
    table(
      ['code', 'HTTP', 'meaning'],
      Object.entries(REFUSALS)
        .filter(([name]) => !Object.hasOwn(PROBLEMS, name))
        .map(([name, { status, cause }]) => [code(name), String(status), cause]),
    ),
}

/** The example of a run that has succeeded, as the OpenAPI document has it. */
function exampleRun(): unknown {
  const { paths } = JSON.parse(read('docs/openapi.json'))
  const { content } = paths['/api/v1/runs/{id}'].get.responses['200']
  return content['application/json'].examples.succeeded.value
}

const SIGNALS: readonly number[] = [EXIT.sighup, EXIT.sigint, EXIT.sigterm]

type Inputs = Readonly<Record<string, { readonly description: string; readonly default: string }>>

interface Setting {
  readonly about: string
  readonly environment?: string
  readonly key?: string
  readonly default?: string
}

const code = (text: string): string => `\`${text}\``

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.join(' | ')} |\n`.replaceAll('|  |', '| |'))
    .join('')

const GLOBALS = new Set(globalOptions().map(({ flags }) => flags))

/** The options of a command that the rows above it do not have. A group has those that all of its commands share. */
function shownOptions(command: Command): readonly Option[] {
  if (command.parent === null) return optionsOf(command)
  const above = new Set([
    ...GLOBALS,
    ...parentsOf(command)
      .flatMap(sharedOptions)
      .map(({ flags }) => flags),
  ])
  const own =
    command.commands.length > 0 ? [...sharedOptions(command), ...optionsOf(command)] : optionsOf(command)
  return own.filter(({ flags }) => !above.has(flags))
}

const parentsOf = ({ parent }: Command): readonly Command[] =>
  parent === null || parent.parent === null ? [] : [parent, ...parentsOf(parent)]

function sharedOptions(group: Command): readonly Option[] {
  const [first, ...others] = commandsUnder(group).filter(({ commands }) => commands.length === 0)
  if (first === undefined || others.length === 0) return []
  return optionsOf(first).filter(({ flags }) =>
    others.every((other) => optionsOf(other).some((each) => each.flags === flags)),
  )
}

const flagCell = ({ short, long, defaultValue }: Option): string => {
  const names = [short, long].filter((name) => name !== undefined).map(code)
  return `${names.join('/')}${typeof defaultValue === 'string' ? ` (${defaultValue})` : ''}`
}
