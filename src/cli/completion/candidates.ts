/**
 * What completes a flag's value or an argument, by its name in the help: `<path>`, `<duration>`, `<id...>`. A test checks
 * that each of them has a row.
 */
import type { Argument, Option } from 'commander'
import { KINDS, MODEL_INPUTS } from '../../protocol/models.js'
import { flagOf, listedValues, parametersOf } from '../../protocol/parameters.js'
import { CONFIG_KEYS, settingOfKey } from '../settings/table.js'
import type { Cursor } from './cursor.js'
import type { Candidate, LocalNames, RunName } from './local-names.js'

export interface Suggestions {
  readonly candidates: readonly Candidate[]
  /** Lets the shell complete a path after `lead`, which is not part of the path. */
  readonly paths?: { readonly of: 'files' | 'folders'; readonly lead: string }
}

type SuggestionSource = (cursor: Cursor, names: LocalNames) => Suggestions | Promise<Suggestions>

const offer = (candidates: readonly Candidate[]): Suggestions => ({ candidates })
const NOTHING = offer([])
const FILES: Suggestions = { candidates: [], paths: { of: 'files', lead: '' } }
const FOLDERS: Suggestions = { candidates: [], paths: { of: 'folders', lead: '' } }

const nothing: SuggestionSource = () => NOTHING
const files: SuggestionSource = () => FILES
const words = (values: readonly string[], about = ''): Suggestions =>
  offer(values.map((value) => ({ value, about })))

const named = (runs: readonly RunName[], lead = ''): Suggestions =>
  offer(runs.map(({ name, about }) => ({ value: `${lead}${name}`, about })))

/** Runs that the command applies to; all runs when none of those match the typed word. */
const runs =
  (applies: (run: RunName) => boolean): SuggestionSource =>
  async ({ stem, words: before }, names) => {
    const all = (await names.runs()).filter(
      ({ name, isConfirmed }) => isConfirmed && name.startsWith(stem) && !before.includes(name),
    )
    const applicable = all.filter(applies)
    return named(applicable.length > 0 ? applicable : all)
  }

/** Files, and outputs of earlier runs once the word can be `run:`. */
const sources: SuggestionSource = async ({ stem }, names) => {
  if (stem === '' || !(stem.startsWith('run:') || 'run:'.startsWith(stem))) return FILES
  const found = named(
    (await names.runs()).filter(({ phase }) => phase === 'succeeded'),
    'run:',
  )
  return stem.startsWith('run:') ? found : { ...FILES, candidates: found.candidates }
}

/** A file after `@`. */
const inputs: SuggestionSource = ({ stem }) =>
  stem.startsWith('@') ? { candidates: [], paths: { of: 'files', lead: '@' } } : NOTHING

const models: SuggestionSource = async ({ path }, names) => {
  const kind = KINDS.find((each) => each === path.at(-1))
  return offer(await names.models(kind))
}

const accounts: SuggestionSource = async (_, names) => offer((await names.service()).accounts)
const keys: SuggestionSource = async (_, names) => offer((await names.service()).keys)
const users: SuggestionSource = async (_, names) => offer(await names.users())

/** By the name of the flag's value in the help. */
const VALUES: Readonly<Record<string, SuggestionSource>> = {
  text: nothing,
  json: inputs,
  n: nothing,
  rate: nothing,
  duration: nothing,
  path: files,
  folder: () => FOLDERS,
  source: sources,
  'provider/name': models,
  name: async (_, names) => offer(await names.profiles()),
  url: nothing,
  port: nothing,
  address: nothing,
  size: nothing,
  spec: nothing,
  cidr: nothing,
  account: accounts,
  glob: nothing,
  'kind=command': nothing,
  'kind=name': nothing,
  kind: () => words(KINDS),
  status: async (_, names) => words([...new Set((await names.everyRun()).map(({ status }) => status))]),
}

/** By the command and the name of the argument. */
const ARGUMENTS: Readonly<Record<string, SuggestionSource>> = {
  'run video prompt': nothing,
  'run image prompt': nothing,
  'run model provider/name': models,
  'status id': runs(() => true),
  'wait id': runs(({ phase }) => phase === 'going'),
  'download id': runs(({ phase }) => phase === 'succeeded'),
  'show id': async (_, names) => named(await names.everyRun()),
  'forget id or key': async (_, names) => named(await names.everyRun()),
  'batch manifest': files,
  'models name': () => offer(KINDS.map((kind) => ({ value: kind, about: MODEL_INPUTS[kind].description }))),
  'config get key': () => settings(),
  'config set key': () => settings(),
  'config unset key': () => settings(),
  'config set value': nothing,
  'admin account create name': nothing,
  'admin account ban name': accounts,
  'admin account unban name': accounts,
  'admin key disable key': keys,
  'admin key enable key': keys,
  'admin key rotate key': keys,
  'admin key set key': keys,
  'admin user add email': nothing,
  'admin user remove email': users,
  'admin user link email': users,
  'admin credits add account': accounts,
  'admin credits add n': nothing,
  'admin credits list account': accounts,
  'admin backup file': files,
}

const settings = (): Suggestions =>
  offer(CONFIG_KEYS.map((key) => ({ value: key, about: settingOfKey(key).about })))

/** The values that the schema of the command's model lists for a flag. */
function schemaValues([command, word]: readonly string[], { long }: Option): readonly string[] | undefined {
  const kind = KINDS.find((each) => each === word)
  if (command !== 'run' || kind === undefined) return undefined
  const [, schema] = Object.entries(parametersOf(kind)).find(([name]) => flagOf(name) === long) ?? []
  return schema === undefined ? undefined : listedValues(schema)
}

/** Undefined when the value of the flag has no row. */
export function sourceOfOption(path: readonly string[], option: Option): SuggestionSource | undefined {
  const values = option.argChoices ?? schemaValues(path, option)
  if (values !== undefined) return () => words(values)
  const [, name = ''] = /[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(option.flags) ?? []
  return VALUES[name]
}

/** Undefined when the argument has no row. */
export function sourceOfArgument(path: readonly string[], argument: Argument): SuggestionSource | undefined {
  const choices = argument.argChoices
  return choices === undefined ? ARGUMENTS[[...path, argument.name()].join(' ')] : () => words(choices)
}
