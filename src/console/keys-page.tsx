/** API keys: a list, the form of one key, and a new key, which is shown once. */
import type { KeyState } from '../protocol/limits.js'
import { linkTo, number } from './format.js'
import { type Assets, Page } from './layout.js'
import { Field, Icon, Input, invalid, Notice, PostButton, Table, Time } from './parts.js'

export interface ShownKey {
  readonly id: number
  readonly name: string
  readonly prefix: string | undefined
  readonly disabled: boolean
  readonly spent: number
  readonly spendLimit: number | undefined
  readonly used: number
  readonly quota: number | undefined
  readonly allowedIps: readonly string[] | undefined
  readonly expiresAtMs: number | undefined
  readonly createdAtMs: number
  readonly usedAtMs: number | undefined
  readonly state: KeyState
}

export interface KeysView {
  readonly assets: Assets
  readonly keys: readonly ShownKey[]
  /** Where the older keys begin. */
  readonly next: number | undefined
  /** `secret`: undefined if the form was sent a second time. */
  readonly created?: { readonly secret: string | undefined } | undefined
}

export const KeysPage = ({ assets, keys, next, created }: KeysView) => (
  <Page
    assets={assets}
    path="/keys"
    title="API keys"
    about="Programs use an API key to create runs. Create one for each program."
    actions={
      <a class="button primary" href="/keys/new">
        <Icon name="plus" /> New key
      </a>
    }
  >
    {created && <Created {...created} />}
    {keys.length === 0 ? (
      <div class="card empty">
        <p>
          No keys yet. Create one, then use it with <code>rushes login</code>.
        </p>
      </div>
    ) : (
      <Table
        label="Keys"
        head={['Key', 'State', 'Spent', 'Runs', 'Last used', 'Created', 'Change']}
        right={['Spent', 'Runs', 'Change']}
      >
        {keys.map((key) => (
          <KeyRow key={key.id} of={key} />
        ))}
      </Table>
    )}
    {next !== undefined && (
      <a class="button" href={linkTo('/keys', { before: next })}>
        Older keys
      </a>
    )}
  </Page>
)

function KeyRow({ of: key }: { readonly of: ShownKey }) {
  const { state } = key
  const limited = (value: number, limit: number | undefined) =>
    limit === undefined ? number(value) : `${number(value)} of ${number(limit)}`
  return (
    <tr>
      <th scope="row">
        <bdi>{key.name}</bdi>
        <code>{key.prefix === undefined ? '' : `${key.prefix}…`}</code>
        <small class="notes">
          {key.expiresAtMs !== undefined && (
            <span>
              expires <Time ms={key.expiresAtMs} />
            </span>
          )}
          {key.allowedIps !== undefined && <span>only from {key.allowedIps.join(', ')}</span>}
        </small>
      </th>
      <td>
        <span class={`badge ${state === 'active' ? 'succeeded' : 'canceled'}`}>{state}</span>
      </td>
      <td class="right" data-name="Spent">
        {limited(key.spent, key.spendLimit)}
      </td>
      <td class="right" data-name="Runs">
        {limited(key.used, key.quota)}
      </td>
      <td data-name="Used">{key.usedAtMs === undefined ? 'never' : <Time ms={key.usedAtMs} />}</td>
      <td data-name="Created">
        <Time ms={key.createdAtMs} />
      </td>
      <td class="right">
        <div class="row acts">
          <a class="button small" href={`/keys/${key.id}`} aria-label={`Edit ${key.name}`}>
            Edit
          </a>
          <PostButton
            action={`/keys/${key.id}/${key.disabled ? 'enable' : 'disable'}`}
            label={`${key.disabled ? 'Enable' : 'Disable'} ${key.name}`}
          >
            {key.disabled ? 'Enable' : 'Disable'}
          </PostButton>
        </div>
      </td>
    </tr>
  )
}

const Created = ({ secret }: { readonly secret: string | undefined }) =>
  secret === undefined ? (
    <Notice tone="info" title="This key was created before, and was shown once." />
  ) : (
    <Notice tone="good" title="Copy the key now. It is shown only once.">
      <code class="secret wrap">{secret}</code>
    </Notice>
  )

/** Texts of the fields, by name. */
export type KeyValues = Readonly<
  Record<'name' | 'spend_limit' | 'quota' | 'allowed_ips' | 'expires_at', string>
>

export interface KeyFormView {
  readonly assets: Assets
  /** Undefined for a new key. */
  readonly id: number | undefined
  readonly values: KeyValues
  readonly problem?: string | undefined
  /** Of a new key: a form that is sent twice creates one key. */
  readonly formKey: string
}

/** A problem names the field that it is about. */
export const KeyFormPage = ({ assets, id, values, problem, formKey }: KeyFormView) => {
  const field = (name: keyof KeyValues) => ({
    name,
    value: values[name],
    ...invalid(name, problem?.startsWith(name) ? problem : undefined),
  })
  const title = id === undefined ? 'New key' : 'Edit key'
  return (
    <Page assets={assets} path="/keys" title={title}>
      {problem && <Notice tone="bad" title={problem} />}
      <form method="post" action={`/keys/${id ?? 'new'}`} class="card form stack">
        <input type="hidden" name="form_key" value={formKey} />
        <Input {...field('name')} label="Name" required maxLength={100} placeholder="CI nightly" />
        <Input
          {...field('spend_limit')}
          label="Lifetime limit, in credits"
          hint="0 or more. Empty: no limit."
          class="narrow"
          inputMode="numeric"
        />
        <Input
          {...field('quota')}
          label="Lifetime limit, in runs"
          hint="0 or more. Empty: no limit."
          class="narrow"
          inputMode="numeric"
        />
        <Field
          id="allowed_ips"
          label="Allowed addresses"
          hint="IP addresses and CIDR ranges, one per line. Empty: any address."
        >
          <textarea id="allowed_ips" name="allowed_ips" rows={3} placeholder="203.0.113.0/24">
            {`\n${values.allowed_ips}`}
          </textarea>
        </Field>
        <Input
          {...field('expires_at')}
          label="Expires"
          hint="At the end of this day, in UTC. Empty: never."
          class="narrow"
          type="date"
        />
        <div class="row">
          <button type="submit" class="button primary">
            {id === undefined ? 'Create key' : 'Save'}
          </button>
          <a class="button" href="/keys">
            Back
          </a>
        </div>
      </form>
    </Page>
  )
}
