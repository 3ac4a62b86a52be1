package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func (c *Client) keep(id int, s Schema) error { return c.write(schemaFile(id), s) }

func (c *Client) recall(id int) (s Schema, known bool, err error) {
	known, err = c.read(schemaFile(id), &s)
	return s, known, err
}

func (c *Client) keepID(subject string, s Schema, id int) error {
	return c.write(idFile(subject, s), id)
}

func (c *Client) recallID(subject string, s Schema) (id int, known bool, err error) {
	known, err = c.read(idFile(subject, s), &id)
	return id, known, err
}

func schemaFile(id int) string { return fmt.Sprintf("schema-%d.json", id) }

func idFile(subject string, s Schema) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", subject, s.Format, s.Text))
	return "id-" + hex.EncodeToString(sum[:16]) + ".json"
}

// write puts a file into the cache folder, complete or not at all.
func (c *Client) write(name string, v any) error {
	if c.cfg.Cache == "" {
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.cfg.Cache, 0o750); err != nil {
		return fmt.Errorf("schema cache: %w", err)
	}
	tmp, err := os.CreateTemp(c.cfg.Cache, ".part-*")
	if err != nil {
		return fmt.Errorf("schema cache: %w", err)
	}
	_, err = tmp.Write(raw)
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(c.cfg.Cache, name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("schema cache: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}

func (c *Client) read(name string, v any) (known bool, err error) {
	if c.cfg.Cache == "" {
		return false, nil
	}
	raw, err := os.ReadFile(filepath.Join(c.cfg.Cache, name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		return false, fmt.Errorf("schema cache: %s: %w", name, err)
	}
	return true, nil
}
