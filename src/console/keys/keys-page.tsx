/** Page with the API keys: shows limits and usage; creates, edits and disables keys. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ConsoleKey } from '../../protocol/console.js'
import { type KeyState, keyStateOf } from '../../protocol/credentials.js'
import { printable } from '../../protocol/text.js'
import { messageOf } from '../api.js'
import { Button } from '../components/button.js'
import { Badge, EmptyState, ErrorNotice, SkeletonLines } from '../components/notice.js'
import { Card, Page } from '../components/page.js'
import { type Column, LoadMore, Table } from '../components/table.js'
import { Time, useNow } from '../components/time.js'
import { showToast } from '../components/toast.js'
import { formatNumber } from '../format.js'
import { actionState, actionStore, runAction, useAction, useResource } from '../resource.js'
import { useSession } from '../session.js'
import { useStore } from '../store.js'
import { KeyDialog } from './key-dialogs.js'
import {
  ChangeUnknown,
  keyActions,
  keysStore,
  lostChangesStore,
  lostSecretsStore,
  readKeys,
  withPage,
} from './key-store.js'

type OpenDialog = { readonly kind: 'create' } | { readonly kind: 'edit'; readonly key: ConsoleKey }

export function KeysPage() {
  const { account } = useSession()
  const { data, error, isLoading, reload } = useResource(
    (signal) => readKeys(undefined, { signal }),
    [],
    keysStore,
  )
  const [lostSecrets, lostChanges] = [useStore(lostSecretsStore).length, useStore(lostChangesStore)]
  useEffect(() => {
    // Reload the list, which shows whether the service carried out the requests.
    if (lostSecrets + lostChanges > 0) reload()
  }, [lostSecrets, lostChanges])
  const more = useAction(readMore, { name: 'more keys' })
  const [open, setOpen] = useState<OpenDialog>()
  const close = () => setOpen(undefined)
  const keys = data?.keys

  const newKey = (
    <Button kind="primary" icon="plus" disabled={account.banned} onClick={() => setOpen({ kind: 'create' })}>
      New key
    </Button>
  )
  return (
    <Page
      title="API keys"
      about="Programs use an API key to create runs. Create a separate key for each program."
      actions={newKey}
    >
      <ErrorNotice error={error} onRetry={reload} />
      {(data !== undefined || error === undefined) && (
        <Card isFlush>
          {keys === undefined ? (
            <SkeletonLines count={4} />
          ) : keys.length === 0 && data?.next == null ? (
            <EmptyState icon="key" title="No API keys" action={newKey}>
              Create one, then use it with <code>rushes login</code> or as <code>RUSHES_API_KEY</code>.
            </EmptyState>
          ) : (
            <KeyTable keys={keys} onEdit={(key) => setOpen({ kind: 'edit', key })} onToggle={toggle} />
          )}
          <ErrorNotice error={more.error} />
          {data?.next != null && <LoadMore action={more} disabled={isLoading} />}
        </Card>
      )}
      {open?.kind === 'create' && <KeyDialog onSubmit={keyActions.create} onClose={close} />}
      {open?.kind === 'edit' && (
        <KeyDialog
          of={open.key}
          onSubmit={(body) => keyActions.change(open.key, body)}
          onSaved={() => showToast('Saved.')}
          onClose={close}
        />
      )}
    </Page>
  )
}

async function readMore(): Promise<void> {
  const before = keysStore.get()?.next
  if (before == null) return
  const page = await readKeys(before)
  keysStore.set((list) => list && withPage(list, before, page))
}

function toggle(key: ConsoleKey): void {
  const name = printable(key.name)
  void runAction(toggleName(key), {
    act: () => keyActions.change(key, { disabled: !key.disabled }),
    onMissed: () => showToast(key.disabled ? `"${name}" works again.` : `"${name}" is disabled.`),
    onMissedError: (error) =>
      showToast(
        error instanceof ChangeUnknown ? error.message : `"${name}" was not changed. ${messageOf(error)}`,
        'bad',
      ),
  })
}

interface MeterProps {
  readonly value: number
  /** Limit; null if there is no limit. */
  readonly max: number | null
}

/** Shows `20 / 100` with a thin bar below. Without a limit, shows only the number. */
function Meter({ value, max }: MeterProps) {
  if (max === null || max === undefined) return <span class="number">{formatNumber(value)}</span>
  const share = max <= 0 ? 1 : Math.min(1, Math.max(0, value / max))
  const tone = share >= 1 ? 'full' : share >= 0.8 ? 'near' : 'low'
  return (
    <span class="meter">
      <span class="number">
        {formatNumber(value)} <span class="muted">/ {formatNumber(max)}</span>
      </span>
      <span class={`meter-bar meter-${tone}`} aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
    </span>
  )
}

interface KeyTableProps {
  readonly keys: readonly ConsoleKey[]
  readonly onEdit: (key: ConsoleKey) => void
  readonly onToggle: (key: ConsoleKey) => void
}

function KeyTable({ keys, onEdit, onToggle }: KeyTableProps) {
  const now = useNow()
  useStore(actionStore)
  const columns: readonly Column<ConsoleKey>[] = [
    { name: 'Key', class: 'key-name', render: (key) => <KeyName of={key} now={now} /> },
    {
      name: 'State',
      render: (key) => {
        const { label, tone } = KEY_STATES[stateOf(key, now)]
        return <Badge tone={tone}>{label}</Badge>
      },
    },
    { name: 'Spent', render: (key) => <Meter value={key.spent} max={key.spend_limit} /> },
    { name: 'Runs', render: (key) => <Meter value={key.used} max={key.quota} /> },
    { name: 'Last used', class: 'nowrap', render: (key) => <Time at={lastUseOf(key)} none="Never" /> },
    { name: 'Created', class: 'nowrap', render: (key) => <Time at={key.created_at} /> },
    {
      name: 'Actions',
      isTitleHidden: true,
      align: 'right',
      class: 'key-buttons',
      render: (key) => {
        const name = printable(key.name)
        return (
          <div class="key-actions">
            <Action label={`Edit ${name}`} onClick={() => onEdit(key)} />
            <Action
              label={`${key.disabled ? 'Enable' : 'Disable'} ${name}`}
              isBusy={actionState(toggleName(key)).isBusy}
              onClick={() => onToggle(key)}
            />
          </div>
        )
      },
    },
  ]
  return <Table class="keys" caption="API keys" columns={columns} rows={keys} keyOf={({ id }) => id} />
}

interface ActionProps {
  readonly isBusy?: boolean
  readonly label: string
  readonly onClick: () => void
}

/** Button that shows the first word of its label, which also names the row. */
export const Action = ({ label, ...more }: ActionProps) => (
  <Button kind="ghost" size="small" label={label} {...more}>
    {label.split(' ')[0]}
  </Button>
)

/** Name of the action that enables or disables a key. */
const toggleName = ({ id }: ConsoleKey): string => `toggle key ${id}`

/** Time of the last use. It is accurate to the minute, so use the creation time if that is later. */
const lastUseOf = ({ last_used_at: used, created_at: created }: ConsoleKey): string | null =>
  used != null && used < created ? created : used

const MAX_ADDRESSES = 2

function KeyName({ of: key, now }: { readonly of: ConsoleKey; readonly now: number }) {
  const addresses = key.allowed_ips ?? []
  const shown = addresses.slice(0, MAX_ADDRESSES).join(', ')
  const notes: readonly (ComponentChildren | false)[] = [
    key.expires_at != null && (
      <span>
        {Date.parse(key.expires_at) <= now ? 'Expired' : 'Expires'} <Time at={key.expires_at} />
      </span>
    ),
    addresses.length > 0 && (
      <span title={addresses.join('\n')}>
        Only from {shown}
        {addresses.length > MAX_ADDRESSES && ` and ${addresses.length - MAX_ADDRESSES} more`}
      </span>
    ),
    key.rate != null && <span>Rate limit {key.rate}</span>,
  ]
  const present = notes.filter((note) => note !== false)
  return (
    <div class="key-label">
      <strong class="wrap">{printable(key.name)}</strong>
      {key.prefix != null && <span class="mono muted">{key.prefix}…</span>}
      {present.length > 0 && (
        <div class="key-notes">
          {present.map((note, at) => (
            <span key={at}>{note}</span>
          ))}
        </div>
      )}
    </div>
  )
}

const KEY_STATES: Readonly<
  Record<KeyState, { readonly label: string; readonly tone: 'good' | 'neutral' | 'warn' | 'bad' }>
> = {
  active: { label: 'Active', tone: 'good' },
  disabled: { label: 'Disabled', tone: 'neutral' },
  expired: { label: 'Expired', tone: 'bad' },
  'spend limit reached': { label: 'Spend limit reached', tone: 'warn' },
  'quota used up': { label: 'Quota used up', tone: 'warn' },
}

export const stateOf = (key: ConsoleKey, now: number): KeyState =>
  keyStateOf(
    {
      disabled: key.disabled,
      expiresAtMs: key.expires_at === null ? undefined : Date.parse(key.expires_at),
      spent: key.spent,
      spendLimit: key.spend_limit ?? undefined,
      used: key.used,
      quota: key.quota ?? undefined,
    },
    now,
  )
