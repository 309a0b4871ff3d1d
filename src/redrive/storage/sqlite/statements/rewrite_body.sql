-- purpose: the body of an edited message
UPDATE bodies SET body = ? WHERE id = ?
