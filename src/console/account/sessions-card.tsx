import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type SessionList } from '../../protocol/console.js'
import { actionState, actionStore, runAction } from '../actions.js'
import { ApiError, messageOf, request } from '../api.js'
import { Button } from '../components/button.js'
import { ConfirmDialog } from '../components/dialog.js'
import { Badge, ErrorNotice, SkeletonLines } from '../components/notice.js'
import { Card } from '../components/page.js'
import { type Column, Table } from '../components/table.js'
import { Time } from '../components/time.js'
import { showToast } from '../components/toast.js'
import { useResource } from '../resource.js'
import { signOut } from '../session.js'
import { createUserStore, currentUser } from '../session-store.js'
import { useStore } from '../store.js'
import { describeAgent } from './user-agent.js'

type Row = SessionList['sessions'][number]

/** The service lists no more. */
const MAX_LISTED = 100

const sessionsStore = createUserStore<SessionList | undefined>(undefined)

const endName = ({ id }: Row): string => `end session ${id}`

function end(row: Row): void {
  const user = currentUser()
  void runAction(endName(row), {
    async act() {
      await request('DELETE', CONSOLE_PATHS.session, { params: { id: row.id } }).catch((thrown: unknown) => {
        // It has ended already.
        if (!(thrown instanceof ApiError && thrown.code === 'not_found')) throw thrown
      })
      sessionsStore.set(
        (list) => list && { ...list, sessions: list.sessions.filter(({ id }) => id !== row.id) },
        user,
      )
    },
    onMissed: () => showToast('The session has ended.'),
    onMissedError: (error) => showToast(messageOf(error), 'bad'),
  })
}

export function SessionsCard() {
  const { data, error, reload } = useResource(
    (signal) => request<SessionList>('GET', CONSOLE_PATHS.sessions, { signal }),
    [],
    sessionsStore,
  )
  useStore(actionStore)
  const [isAsking, setAsking] = useState(false)
  const columns: readonly Column<Row>[] = [
    {
      name: 'Browser',
      render: (row) => (
        <span class="row" title={row.user_agent ?? undefined}>
          <span class="wrap">{describeAgent(row.user_agent)}</span>
          {row.current && <Badge tone="accent">This one</Badge>}
        </span>
      ),
    },
    { name: 'Address', render: (row) => <span class="mono">{row.address ?? '–'}</span> },
    { name: 'Signed in', class: 'nowrap', render: (row) => <Time at={row.created_at} /> },
    { name: 'Last used', class: 'nowrap', render: (row) => <Time at={row.last_used_at} /> },
    {
      name: 'End',
      isTitleHidden: true,
      align: 'right',
      render: (row) =>
        row.current ? (
          <span />
        ) : (
          <Button size="small" isBusy={actionState(endName(row)).isBusy} onClick={() => end(row)}>
            End
          </Button>
        ),
    },
  ]
  return (
    <Card
      isFlush
      title="Sessions"
      about="Browsers that are signed in as you. A session ends after 7 days without use."
      actions={
        <Button size="small" icon="sign-out" onClick={() => setAsking(true)}>
          Sign out everywhere
        </Button>
      }
    >
      {error !== undefined && (
        <div class="card-notice">
          <ErrorNotice error={error} onRetry={reload} />
        </div>
      )}
      {data !== undefined ? (
        <Table caption="Sessions" columns={columns} rows={data.sessions} keyOf={({ id }) => id} />
      ) : (
        error === undefined && <SkeletonLines count={2} />
      )}
      {data?.sessions.length === MAX_LISTED && (
        <p class="hint card-notice">These are the {MAX_LISTED} sessions that were used last.</p>
      )}
      {isAsking && (
        <ConfirmDialog
          title="Sign out everywhere?"
          action="Sign out everywhere"
          kind="danger"
          onConfirm={() => signOut(true)}
          onClose={() => setAsking(false)}
        >
          <p>
            All your sessions end, also this one, and unused sign-in links. API keys and runs are not
            affected.
          </p>
        </ConfirmDialog>
      )}
    </Card>
  )
}
