/** `rushes help environment`. The rows are those of docs/environment.md. */
import { FURTHER_ENVIRONMENT, SETTINGS, SHARED_ENVIRONMENT } from '../settings/table.js'
import { listing } from './listing.js'

interface Named {
  readonly about: string
  readonly environment?: string
  readonly key?: string
  readonly default?: string
}

const settings: readonly Named[] = Object.values(SETTINGS)

const variableRows = settings.flatMap(({ environment, about, default: usual }) =>
  environment === undefined
    ? []
    : [[environment, usual === undefined ? about : `${about} (default ${usual})`] as const],
)

const keyRows = settings.flatMap(({ key, about }) => (key === undefined ? [] : [[key, about] as const]))

/** Without links and references to other parts of docs/environment.md. */
const rowsOf = (variables: Readonly<Record<string, string>>) =>
  Object.entries(variables).map(
    ([name, about]) => [name, about.replace(/\[(.*?)\]\(.*?\)/g, '$1').replace(' below', '')] as const,
  )

export const environment =
  (): string => `A flag overrides an environment variable, which overrides the config file, which
overrides the default. An empty variable counts as unset.

Settings:

${listing(variableRows)}

Config keys of a profile (rushes config set <key> <value>):

${listing(keyRows)}

Other variables:

${listing(rowsOf(FURTHER_ENVIRONMENT))}

Common variables:

${listing(rowsOf(SHARED_ENVIRONMENT))}

The API key is taken from the first of these that is set: RUSHES_API_KEY, the file
named by RUSHES_API_KEY_FILE, RUSHES_API_KEY_COMMAND, apiKeyCommand in the config
file, the key stored by rushes login. It cannot be given as a flag: it would show
in ps and in the shell history.
`
