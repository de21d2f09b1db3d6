/** Checks real output against docs/schemas. Here, a key that a schema does not list is an error. */
import { readdirSync, readFileSync } from 'node:fs'
import { Ajv, type ValidateFunction } from 'ajv'
import { commandWord, wantsJson } from '../../src/cli/settings/globals.js'

interface Schema {
  readonly title: string
  readonly required?: readonly string[]
}

const FOLDER = new URL('../../docs/schemas/', import.meta.url)

/** The published schemas by name, such as `run`. */
export const SCHEMAS: ReadonlyMap<string, Schema> = new Map(
  readdirSync(FOLDER)
    .filter((file) => file.endsWith('.json'))
    .map((file) => [file.replace('.json', ''), JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'))]),
)

/** Forbids keys that a schema does not list, in the objects that list any. `isOpen`: names of schemas that stay as they are. */
export function closed(schema: unknown, isOpen = (_name: string): boolean => false): unknown {
  if (Array.isArray(schema)) return schema.map((each) => closed(each, isOpen))
  if (typeof schema !== 'object' || schema === null) return schema
  const inner: Readonly<Record<string, unknown>> = Object.fromEntries(
    Object.entries(schema).map(([name, value]) => [name, isOpen(name) ? value : closed(value, isOpen)]),
  )
  const listsKeys = [inner.type].flat().includes('object') && Object.keys(inner.properties ?? {}).length > 0
  return listsKeys && inner.additionalProperties === undefined
    ? { ...inner, additionalProperties: false }
    : inner
}

// The manifest schema already forbids additional keys.
const ajv = new Ajv({ strict: false, allErrors: true })
for (const [name, schema] of SCHEMAS)
  ajv.addSchema((name === 'manifest' ? schema : closed(schema)) as object, `${name}.json`)

/** Throws for a name without a schema, and for a reference to nothing. */
export function validatorOf(name: string): ValidateFunction {
  const validate = ajv.getSchema(`${name}.json`)
  if (validate === undefined) throw new Error(`docs/schemas has no ${name}.json`)
  return validate
}

/** Returns the differences between a value and a schema. Empty if the value is valid. */
function misfits(name: string, value: unknown): readonly string[] {
  const validate = validatorOf(name)
  if (validate(value)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

const nameOfSpoken = (value: object): string | undefined =>
  ['error', 'warning', 'debug'].find((name) => name in value)

/** Commands whose lines have the schema of another one. */
const SHARED: Readonly<Record<string, string>> = {
  wait: 'run',
  status: 'run',
  download: 'run',
  cancel: 'run',
  'models add': 'models-change',
  'models remove': 'models-change',
  'admin key create': 'admin-new-key',
  'admin run list': 'admin-run',
  'admin run refund': 'admin-run-decision',
  'admin run adopt': 'admin-run-decision',
  'admin user add': 'admin-user-link',
  'admin user link': 'admin-user-link',
  'admin credits add': 'admin-account',
}

/** Returns the schema of a line on standard output, for the command that printed it. */
export function nameOfAnswer(argv: readonly string[], value: unknown): string {
  const command = commandWord(argv) ?? ''
  const words = argv.filter((word) => !word.startsWith('-'))
  const [first, second, third] = words[0] === command ? words : [command]
  const isPlan = argv.includes('--check') || argv.includes('--dry-run')
  const isSummary = Object.hasOwn(Object(value), 'summary')
  if (command === 'run' && isPlan) return 'dry-run'
  if (command === 'config' && second === undefined) return 'config-list'
  if (command === 'batch')
    return `batch${isPlan ? '-plan' : isSummary ? '' : '-row'}${isSummary ? '-summary' : ''}`
  const longest = [`${first} ${second} ${third}`, `${first} ${second}`, command]
  const shared = longest.map((words) => SHARED[words]).find((name) => name !== undefined)
  if (shared !== undefined) return shared
  if (command === 'models' && second !== undefined && second !== 'list' && !SCHEMAS.has(`models-${second}`))
    return 'model-document'
  return SCHEMAS.has(`${first}-${second}`) ? `${first}-${second}` : command
}

const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')

interface Printed {
  readonly stdout: string
  readonly stderr: string
}

/** Returns the lines printed with `--json` that are not valid JSON, or that no schema allows. */
export function misfitsOf(argv: readonly string[], { stdout, stderr }: Printed): readonly string[] {
  if (!wantsJson(argv) || argv.some((word) => /^(-h|--help|-V|--version|help)$/.test(word))) return []
  const check = (line: string, nameOf: (value: unknown) => string | undefined): readonly string[] => {
    try {
      const value: unknown = JSON.parse(line)
      const name = nameOf(value)
      return name === undefined || !SCHEMAS.has(name) ? [`no schema is for ${line}`] : misfits(name, value)
    } catch {
      return [`no JSON: ${line}`]
    }
  }
  return [
    ...linesOf(stderr).flatMap((line) => check(line, (value) => nameOfSpoken(Object(value)))),
    ...linesOf(stdout).flatMap((line) => check(line, (value) => nameOfAnswer(argv, value))),
  ]
}
