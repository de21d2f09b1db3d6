import { useState } from 'preact/hooks'
import { CONSOLE_PATHS, type SessionList } from '../../protocol/console.js'
import { messageOf, request } from '../api.js'
import { Button } from '../components/button.js'
import { ConfirmDialog } from '../components/dialog.js'
import { Badge, ErrorNotice, SkeletonLines } from '../components/notice.js'
import { Card } from '../components/page.js'
import { type Column, Table } from '../components/table.js'
import { Time } from '../components/time.js'
import { showToast } from '../components/toast.js'
import { useResource } from '../resource.js'
import { signOut } from '../session.js'
import { describeAgent } from './user-agent.js'

type Row = SessionList['sessions'][number]

export function SessionsCard() {
  const { data, error, reload, set } = useResource(
    (signal) => request<SessionList>('GET', CONSOLE_PATHS.sessions, { signal }),
    [],
  )
  const [isAsking, setAsking] = useState(false)
  const end = async (row: Row) => {
    try {
      await request('DELETE', CONSOLE_PATHS.session, { params: { id: row.id } })
      set({ sessions: (data?.sessions ?? []).filter(({ id }) => id !== row.id) })
      showToast('The session has ended.')
    } catch (thrown) {
      showToast(messageOf(thrown), 'bad')
    }
  }
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
          <Button size="small" onClick={() => void end(row)}>
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
