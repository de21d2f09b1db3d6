/** The only notice of a service that does not answer, or of a proxy that answers in its place. Reconnects by itself. */
import { connectionStore, refreshSession } from '../api.js'
import { Button } from '../components/button.js'
import { usePolling } from '../polling.js'
import { useStore } from '../store.js'

export function ConnectionNotice() {
  return useStore(connectionStore) === 'lost' ? <Reconnecting /> : null
}

/** Polls the service, since not every page does. */
function Reconnecting() {
  const { retry } = usePolling(
    {
      async ask(signal) {
        await refreshSession(signal)
        return 'done'
      },
    },
    [],
  )
  return (
    <div class="toast toast-warn toast-late">
      <span class="spinner" />
      <span>
        <strong>The service does not answer.</strong> Reconnecting… Your data is safe.
      </span>
      <Button size="small" onClick={retry}>
        Try now
      </Button>
    </div>
  )
}
