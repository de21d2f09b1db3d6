/** Checks real output against the published schemas. Here, a key that a schema does not list is an error. */
import { Ajv, type ValidateFunction } from 'ajv'
import { expect } from 'vitest'
import { commandWord, wantsJson } from '../../src/cli/flags/globals.js'
import { PUBLISHED, type PublishedName } from '../../src/cli/schemas/index.js'

const ajv = new Ajv({ strict: false, allErrors: true })
const validators = new Map<PublishedName, ValidateFunction>()

/** Forbids additional keys in objects that list their keys. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]))
  const isObject = [inner.type].flat().includes('object') && Object.keys(inner.properties ?? {}).length > 0
  return isObject && inner.additionalProperties === undefined
    ? { ...inner, additionalProperties: false }
    : inner
}

/** Returns the differences between a value and a schema. Empty if the value is valid. */
export function misfits(name: PublishedName, value: unknown): readonly string[] {
  let validate = validators.get(name)
  if (validate === undefined) {
    const { schema } = PUBLISHED.find((each) => each.name === name) ?? {}
    // The manifest schema already forbids additional keys.
    validate = ajv.compile((name === 'manifest' ? schema : closed(schema)) as object)
    validators.set(name, validate)
  }
  if (validate(value)) return []
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${name}${instancePath} ${message} ${JSON.stringify(params)}`,
  )
}

/** Expects a value to be valid, and to be invalid without a required key or with an additional key. */
export function expectToFit(name: PublishedName, value: unknown): void {
  expect(misfits(name, value)).toEqual([])
  const { schema } = PUBLISHED.find((each) => each.name === name) ?? {}
  const { required = [] } = schema as { readonly required?: readonly string[] }
  for (const key of required) {
    const { [key]: _, ...others } = value as Record<string, unknown>
    expect(misfits(name, others), `without ${key}`).not.toEqual([])
  }
  // A manifest may have additional keys.
  if (typeof value === 'object' && name !== 'manifest')
    expect(misfits(name, { ...value, further: 1 })).not.toEqual([])
}

const nameOfSpoken = (value: object): PublishedName | undefined =>
  (['error', 'warning', 'debug'] as const).find((name) => name in value)

/** Returns the schema of a line on standard output, for the command that printed it. */
export function nameOfAnswer(argv: readonly string[], value: unknown): PublishedName | undefined {
  const words = argv.filter((word) => !word.startsWith('-'))
  const isPlan = argv.includes('--check') || argv.includes('--dry-run')
  const isSummary = typeof value === 'object' && value !== null && 'summary' in value
  switch (commandWord(argv)) {
    case 'run':
      return isPlan ? 'dry-run' : 'run'
    case 'wait':
    case 'status':
    case 'download':
    case 'cancel':
      return 'run'
    case 'list':
      return 'list'
    case 'init':
      return 'init'
    case 'gallery':
      return 'gallery'
    case 'show':
      return 'show'
    case 'open':
      return 'open'
    case 'spend':
      return 'spend'
    case 'batch':
      return `batch${isPlan ? '-plan' : isSummary ? '' : '-row'}${isSummary ? '-summary' : ''}` as PublishedName
    case 'models':
      if (['add', 'remove', 'save'].includes(words[1] ?? '')) return 'models-change'
      if (['import', 'search'].includes(words[1] ?? '')) return `models-${words[1]}` as PublishedName
      return words[1] === undefined ? 'models' : words[1].includes('/') ? 'model-document' : 'model'
    case 'doctor':
      return 'doctor'
    case 'serve':
      return 'serve'
    case 'forget':
      return 'forget'
    case 'admin':
      if (words[1] === 'backup' || words[1] === 'verify' || words[1] === 'migrate') return `admin-${words[1]}`
      if (words[1] === 'key') return words[2] === 'create' ? 'admin-new-key' : 'admin-key'
      if (words[1] === 'user')
        return words[2] === 'add' || words[2] === 'link' ? 'admin-user-link' : 'admin-user'
      if (words[1] === 'models') return 'admin-models'
      if (words[1] === 'run') return 'admin-run'
      return words[1] === 'credits' && words[2] === 'list' ? 'admin-credits' : 'admin-account'
    case 'config':
      return `config-${words[1]}` as PublishedName
    default:
      return undefined
  }
}

const linesOf = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '')

interface Printed {
  readonly stdout: string
  readonly stderr: string
}

/** Returns the lines printed with `--json` that are not valid JSON, or that no schema allows. */
export function misfitsOf(argv: readonly string[], { stdout, stderr }: Printed): readonly string[] {
  if (
    !wantsJson(argv) ||
    argv[0] === '__complete' ||
    argv.some((word) => /^(-h|--help|-V|--version|help)$/.test(word))
  )
    return []
  const check = (line: string, nameOf: (value: unknown) => PublishedName | undefined): readonly string[] => {
    try {
      const value: unknown = JSON.parse(line)
      const name = nameOf(value)
      return name === undefined ? [`no schema is for ${line}`] : misfits(name, value)
    } catch {
      return [`no JSON: ${line}`]
    }
  }
  return [
    ...linesOf(stderr).flatMap((line) => check(line, (value) => nameOfSpoken(Object(value)))),
    ...linesOf(stdout).flatMap((line) => check(line, (value) => nameOfAnswer(argv, value))),
  ]
}
