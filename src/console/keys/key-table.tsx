import type { ComponentChildren } from 'preact'
import type { ConsoleKey } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { actionState, actionStore } from '../actions.js'
import { Button } from '../components/button.js'
import { Meter } from '../components/meter.js'
import { Badge } from '../components/notice.js'
import { type Column, Table } from '../components/table.js'
import { Time, useNow } from '../components/time.js'
import { formatTime } from '../format.js'
import { useStore } from '../store.js'
import { KEY_STATES, stateOf } from './key-state.js'

export interface KeyTableProps {
  readonly keys: readonly ConsoleKey[]
  readonly onEdit: (key: ConsoleKey) => void
  readonly onRotate: (key: ConsoleKey) => void
  readonly onToggle: (key: ConsoleKey) => void
}

export function KeyTable({ keys, onEdit, onRotate, onToggle }: KeyTableProps) {
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
      render: (key) => (
        <div class="key-actions">
          <Button
            kind="ghost"
            size="small"
            icon="edit"
            label={`Change ${printable(key.name)}`}
            onClick={() => onEdit(key)}
          />
          <Button
            kind="ghost"
            size="small"
            icon={key.disabled ? 'play' : 'pause'}
            isBusy={actionState(toggleName(key)).isBusy}
            label={`${key.disabled ? 'Enable' : 'Disable'} ${printable(key.name)}`}
            onClick={() => onToggle(key)}
          />
          <Button
            kind="ghost"
            size="small"
            icon="rotate"
            label={`Rotate ${printable(key.name)}`}
            onClick={() => onRotate(key)}
          />
        </div>
      ),
    },
  ]
  return <Table class="keys" caption="API keys" columns={columns} rows={keys} keyOf={({ id }) => id} />
}

/** The name of the action. */
export const toggleName = ({ id }: ConsoleKey): string => `toggle key ${id}`

/** It is known to the minute: a key is not used before it is created. */
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
    key.rotates_until != null && (
      <span title={formatTime(key.rotates_until)}>
        Old secret ends <Time at={key.rotates_until} />
      </span>
    ),
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
