/**
 * What a value can be, by what the help calls it: `<path>`, `<duration>`, `<id...>`. Every flag with a value and every
 * argument has a row; a test holds that.
 */
import type { Argument, Option } from 'commander'
import { KINDS, MODEL_INPUTS } from '../../protocol/models.js'
import { listedValues, parametersOf } from '../../protocol/parameters.js'
import { flagOf } from '../flags/model.js'
import { CONFIG_KEYS, settingOfKey } from '../settings/table.js'
import type { Spot } from './line.js'
import type { Candidate, Known, KnownRun } from './local-names.js'

export interface Offer {
  readonly candidates: readonly Candidate[]
  /** The shell's own completion of paths, after a beginning that is no part of the path. */
  readonly paths?: { readonly of: 'files' | 'folders'; readonly lead: string }
}

type Source = (spot: Spot, known: Known) => Offer | Promise<Offer>

const offer = (candidates: readonly Candidate[]): Offer => ({ candidates })
const NOTHING = offer([])
const FILES: Offer = { candidates: [], paths: { of: 'files', lead: '' } }
const FOLDERS: Offer = { candidates: [], paths: { of: 'folders', lead: '' } }

const nothing: Source = () => NOTHING
const files: Source = () => FILES
const words = (values: readonly string[], about = ''): Offer =>
  offer(values.map((value) => ({ value, about })))

const named = (runs: readonly KnownRun[], lead = ''): Offer =>
  offer(runs.map(({ name, about }) => ({ value: `${lead}${name}`, about })))

/** Runs that the command is for; when none of them begins as the word does, any run. */
const runs =
  (isMeant: (run: KnownRun) => boolean): Source =>
  async ({ stem, words: before }, known) => {
    const all = (await known.runs()).filter(
      ({ name, isConfirmed }) => isConfirmed && name.startsWith(stem) && !before.includes(name),
    )
    const meant = all.filter(isMeant)
    return named(meant.length > 0 ? meant : all)
  }

/** Files, unless what was typed can only become an output of an earlier run. */
const sources: Source = async ({ stem }, known) => {
  if (stem === '' || !(stem.startsWith('run:') || 'run:'.startsWith(stem))) return FILES
  const found = named(
    (await known.runs()).filter(({ phase }) => phase === 'succeeded'),
    'run:',
  )
  return stem.startsWith('run:') ? found : { ...FILES, candidates: found.candidates }
}

/** `@` and a file. */
const inputs: Source = ({ stem }) =>
  stem.startsWith('@') ? { candidates: [], paths: { of: 'files', lead: '@' } } : NOTHING

const models: Source = async ({ path }, known) => {
  const kind = KINDS.find((each) => each === path.at(-1))
  return offer(await known.models(kind))
}

const accounts: Source = async (_, known) => offer((await known.service()).accounts)
const keys: Source = async (_, known) => offer((await known.service()).keys)

/** By the name of the value in the help. */
const VALUES: Readonly<Record<string, Source>> = {
  text: nothing,
  json: inputs,
  n: nothing,
  duration: nothing,
  path: files,
  folder: () => FOLDERS,
  source: sources,
  'provider/name': models,
  name: async (_, known) => offer(await known.profiles()),
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
  status: async (_, known) => words([...new Set((await known.everyRun()).map(({ status }) => status))]),
}

/** By the command and the name of the argument. */
const ARGUMENTS: Readonly<Record<string, Source>> = {
  'run video prompt': nothing,
  'run image prompt': nothing,
  'run model provider/name': models,
  'status id': runs(() => true),
  'wait id': runs(({ phase }) => phase === 'going'),
  'download id': runs(({ phase }) => phase === 'succeeded'),
  'forget key': async (_, known) =>
    named((await known.everyRun()).filter(({ phase }) => phase === 'unconfirmed')),
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
  'admin key set key': keys,
  'admin credits add account': accounts,
  'admin credits add n': nothing,
  'admin credits list account': accounts,
}

const settings = (): Offer =>
  offer(CONFIG_KEYS.map((key) => ({ value: key, about: settingOfKey(key).about })))

/** The values that the schema of the command's model lists for a flag. */
function schemaValues([command, word]: readonly string[], { long }: Option): readonly string[] | undefined {
  const kind = KINDS.find((each) => each === word)
  if (command !== 'run' || kind === undefined) return undefined
  const [, schema] = Object.entries(parametersOf(kind)).find(([name]) => flagOf(name) === long) ?? []
  return schema === undefined ? undefined : listedValues(schema)
}

/** Undefined where no row says what the value of a flag is. */
export function sourceOfOption(path: readonly string[], option: Option): Source | undefined {
  const values = option.argChoices ?? schemaValues(path, option)
  if (values !== undefined) return () => words(values)
  const [, name = ''] = /[<[](.+?)(?:\.\.\.)?[>\]]$/.exec(option.flags) ?? []
  return VALUES[name]
}

/** The same of an argument. */
export function sourceOfArgument(path: readonly string[], argument: Argument): Source | undefined {
  const choices = argument.argChoices
  return choices === undefined ? ARGUMENTS[[...path, argument.name()].join(' ')] : () => words(choices)
}
