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
  (): string => `A flag goes before the environment, the environment before the config file, the
config file before the default. An empty variable counts as unset.

Settings:

${listing(variableRows)}

In the config file (rushes config set <key> <value>), by profile:

${listing(keyRows)}

Further variables:

${listing(rowsOf(FURTHER_ENVIRONMENT))}

What these mean everywhere, they mean here:

${listing(rowsOf(SHARED_ENVIRONMENT))}

The API key comes from the first of these that names one: RUSHES_API_KEY, the
file of RUSHES_API_KEY_FILE, RUSHES_API_KEY_COMMAND, apiKeyCommand of the config
file, the key that rushes login stored for this address. There is no flag for it:
it would show in ps and in the history of the shell.
`
