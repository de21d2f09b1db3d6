import { useRef, useState } from 'preact/hooks'
import type { ConsoleKey, KeyTermsBody } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { messageOf } from '../api.js'
import { Button } from '../components/button.js'
import { Dialog, DialogActions } from '../components/dialog.js'
import { focusFirstError, TextAreaField, TextField } from '../components/field.js'
import { Notice } from '../components/notice.js'
import { showToast } from '../components/toast.js'
import { useAction } from '../resource.js'
import { checkFields, expiryHint, fieldsOf, type KeyFields, NO_TERMS, termsOf } from './key-terms.js'

export interface KeyDialogProps {
  /** The key to change; without it a key is created. */
  readonly of?: ConsoleKey
  /** Carried out to its end, also when the dialog is closed meanwhile. */
  readonly onSubmit: (body: KeyTermsBody) => Promise<unknown>
  readonly onSaved?: () => void
  readonly onClose: () => void
}

export function KeyDialog({ of: key, onSubmit, onSaved, onClose }: KeyDialogProps) {
  const before = useRef(key === undefined ? NO_TERMS : fieldsOf(key)).current
  const [fields, setFields] = useState(before)
  const [isTried, setTried] = useState(false)
  const save = useAction(onSubmit, {
    onDone: () => {
      onSaved?.()
      onClose()
    },
    onMissed: () => onSaved?.(),
  })
  const leave = () => {
    if (save.isBusy && key === undefined)
      showToast('The key is still being created. Its secret will be shown here.')
    onClose()
  }
  const submit = () => {
    const body = termsOf(fields, before)
    if (Object.keys(body).length === 0) onClose()
    else void save.run(body)
  }
  const found = checkFields(fields, before, Date.now())
  const errors = isTried ? found : {}
  const field = (name: keyof KeyFields) => ({
    name,
    value: fields[name],
    error: errors[name],
    onInput: (value: string) => setFields({ ...fields, [name]: value }),
  })
  return (
    <Dialog title={key === undefined ? 'New API key' : `Change "${printable(key.name)}"`} onClose={leave}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          setTried(true)
          if (Object.keys(found).length === 0) submit()
          else focusFirstError(event.currentTarget)
        }}
      >
        <TextField
          label="Name"
          maxLength={100}
          autocomplete="off"
          placeholder="CI, or a computer's name"
          {...field('name')}
        />
        <div class="form-row">
          <TextField
            label="Spend limit"
            isOptional
            inputMode="numeric"
            autocomplete="off"
            placeholder="No limit"
            hint="Credits, over its whole life"
            {...field('spendLimit')}
          />
          <TextField
            label="Quota"
            isOptional
            inputMode="numeric"
            autocomplete="off"
            placeholder="No limit"
            hint="Accepted runs"
            {...field('quota')}
          />
        </div>
        <TextField
          label="Expires"
          isOptional
          type="date"
          hint={expiryHint(fields.expires, key)}
          {...field('expires')}
        />
        <TextAreaField
          label="Allowed IP addresses"
          isOptional
          rows={2}
          placeholder="Any address"
          hint={
            <>
              One per line: <code>192.0.2.7</code> or <code>10.0.0.0/8</code>
            </>
          }
          {...field('addresses')}
        />
        {save.error !== undefined && <Notice tone="bad">{messageOf(save.error)}</Notice>}
        <DialogActions>
          <Button onClick={leave}>Cancel</Button>
          <Button type="submit" kind="primary" isBusy={save.isBusy}>
            {key === undefined ? 'Create key' : 'Save'}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  )
}
